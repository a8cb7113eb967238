package song

import (
	"tutti/internal/config/setting"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
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
		setting.List("states", &s.States, []string{string(core.StatePublished)}, "Indexed analysis states.").
			Matching(`^[^\s,&=]+$`, "an analysis state such as PUBLISHED").Require(),
	}
}

// Missing implements upstream.Settings.
func (s *Settings) Missing() (key, hint string) { return "", "" }

// Type returns the type song.
func Type() upstream.Type {
	return upstream.Type{
		Name: core.TypeSong, Fields: core.RecordFields{ID: "analysisId", Organization: "studyId"}, Known: mapping.Song,
		Organization: "study", Organizations: "studies", DocumentType: "analysis", Topic: "song-analysis",
		Section: "song", NewSettings: func() upstream.Settings { return new(Settings) },
		ListPath: func(upstream.Settings) string { return "studies/all" },
		Open: func(cfg upstream.Config, s upstream.Settings) (upstream.Reader, error) {
			return New(Config{Config: cfg, States: s.(*Settings).States})
		},
	}
}
