package song

import (
	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
	"tutti/internal/upstream/song/document"
)

// Settings are the settings of a repository of type song.
type Settings struct {
	// States are the indexed analysis states.
	States []string
}

var _ upstream.Settings = (*Settings)(nil)

// Keys implements upstream.Settings.
func (s *Settings) Keys() []setting.Key {
	return []setting.Key{
		setting.List("states", &s.States, []string{string(datamodel.StatePublished)}, "Indexed analysis states.").
			Matching(`^[^\s,&=]+$`, "an analysis state such as PUBLISHED").Require(),
	}
}

// Missing implements upstream.Settings.
func (s *Settings) Missing() (key, hint string) { return "", "" }

// Type returns the type song.
func Type() upstream.Type {
	return upstream.Type{
		Name: core.TypeSong, Documents: documents(),
		Exclusions: []upstream.Exclusion{
			upstream.ByOrganization("Ids of the studies whose analyses are not indexed; organizations of type lyric."),
			upstream.ByRecord("analyses", "Ids of analyses that are not indexed."),
			{List: "files", Path: "files.objectId", Doc: "Object ids; an analysis with one of these files is not indexed, nor are its other files."},
			{List: "donors", Path: "samples.donor.donorId", Doc: "Ids of donors whose analyses are not indexed."},
			{List: "specimens", Path: "samples.specimen.specimenId", Doc: "Ids of specimens whose analyses are not indexed."},
			{List: "samples", Path: "samples.sampleId", Doc: "Ids of samples whose analyses are not indexed."},
		},
		Organization: "study", Organizations: "studies", Topic: "song-analysis",
		Events: core.EventFormat{
			Name: "song", RecordID: "analysisId", Organization: "studyId", Servers: []core.EventMember{{Name: "songServerId"}},
			Ignored: []string{"state", "action", "analysis"},
		},
		Section: "song", NewSettings: func() upstream.Settings { return new(Settings) },
		ListPath: func(upstream.Settings) string { return "studies/all" },
		Open: func(cfg upstream.Config, s upstream.Settings) (upstream.Reader, error) {
			return New(Config{Config: cfg, States: s.(*Settings).States})
		},
	}
}

// documents returns the kinds of documents that analyses can become.
func documents() []upstream.Documents {
	record := core.RecordFields{ID: "analysisId", Organization: "studyId", State: "analysisState", Updated: "updatedAt", Unordered: []string{"files.*", "samples.*"}}
	analysis := core.RecordFields{
		ID: "analysisId", Organization: "studyId", State: "state", Updated: "analysis.updatedAt", Unordered: []string{"analysis.files.*", "analysis.samples.*"},
	}
	return []upstream.Documents{
		{Name: upstream.DefaultDocuments, DocumentType: "analysis", Fields: record, Known: mapping.Song, Append: upstream.SpliceRecord},
		{Name: "analysis", Above: "analysis", DocumentType: "analysis", Fields: analysis, Known: mapping.SongAnalysis, Append: document.Analysis},
		{
			Name: "file", Above: "analysis", DocumentType: "file", Known: mapping.SongFile, Split: document.Files,
			Fields: core.RecordFields{
				ID: "analysis.analysisId", Organization: "study_id", Document: "object_id", State: "analysis.analysisState",
				Updated:   "analysis.updatedAt",
				Unordered: []string{"analysis.samples.*"},
			},
		},
		{
			Name: "file-v4", Above: "analysis", DocumentType: "file", Known: mapping.SongFileV4, Split: document.FilesV4,
			Fields: core.RecordFields{
				ID: "analysis.analysis_id", Organization: "study_id", Document: "object_id", State: "analysis.analysis_state",
				Updated: "analysis.updated_at",
				// The members of info are beside those of donors, specimens and samples.
				Unordered: []string{"donors", "donors.specimens", "donors.specimens.samples"},
			},
		},
	}
}
