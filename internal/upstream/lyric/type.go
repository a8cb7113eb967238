package lyric

import (
	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
)

// Settings are the settings of a repository of type lyric.
type Settings struct {
	// CategoryID is the indexed category.
	CategoryID string
	// ValidOnly excludes records that violate their dictionary.
	ValidOnly bool
	// Entity is the only indexed entity; empty for the category's central one, or for all if it has none.
	Entity string
	// DictionaryURL is the base URL of the Lectern with the category's dictionary, empty for none.
	DictionaryURL setting.URL
}

var _ upstream.Settings = (*Settings)(nil)

// Keys implements upstream.Settings.
func (s *Settings) Keys() []setting.Key {
	return []setting.Key{
		setting.Text("categoryId", &s.CategoryID, "", "Indexed category.").OrNumber().
			Matching(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$`, "a category's id, such as 1"),
		setting.Flag("validOnly", &s.ValidOnly, true, "Excludes records that violate their dictionary."),
		setting.Text("entity", &s.Entity, "", "The only indexed entity; empty for the category's central one, or for all if it has none."),
		setting.Address("dictionaryUrl", &s.DictionaryURL, "Base URL of the Lectern with the category's dictionary, whose types the fields of records get; empty for none.").
			Matching(`^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\s]+(/[^?#\s]*)?$`, "an absolute http or https URL without user, password, query and fragment"),
	}
}

// Missing implements upstream.Settings.
func (s *Settings) Missing() (key, hint string) {
	if s.CategoryID == "" {
		return "categoryId", "set the id of a category of the repository, such as 1"
	}
	return "", ""
}

// Type returns the type lyric.
func Type() upstream.Type {
	return upstream.Type{
		Name: core.TypeLyric,
		Documents: []upstream.Documents{{
			Name: upstream.DefaultDocuments, DocumentType: "record", Known: mapping.Lyric, Append: upstream.SpliceRecord,
			// Lyric selects the records that another one contains without ORDER BY. Fields of a schema hold no objects.
			Fields: core.RecordFields{ID: "systemId", Organization: "organization", Entity: "entityName", Unordered: []string{"data.**"}},
		}},
		Exclusions: []upstream.Exclusion{
			upstream.ByOrganization("Organizations whose records are not indexed."),
			upstream.ByRecord("records", "System ids of records that are not indexed."),
		},
		Organization: "organization", Organizations: "organizations", NonOverlapping: true,
		Events: core.EventFormat{
			Name: "lyric", RecordID: "systemId", Organization: "organization", Entity: "entityName",
			Servers: []core.EventMember{{Name: "categoryId", OrNumber: true}, {Name: "categoryAlias"}}, ServerTerm: "category",
			Data: "data", Action: "action", ActionDelete: "delete",
			Ignored: []string{"isValid"},
		},
		EventServer: func(s upstream.Settings) string { return s.(*Settings).CategoryID },
		Section:     "lyric", NewSettings: func() upstream.Settings { return new(Settings) },
		ListPath: func(s upstream.Settings) string { return "category/" + s.(*Settings).CategoryID },
		Open: func(cfg upstream.Config, s upstream.Settings) (upstream.Reader, error) {
			own := s.(*Settings)
			return New(Config{Config: cfg, CategoryID: own.CategoryID, ValidOnly: own.ValidOnly, Entity: own.Entity, DictionaryURL: own.DictionaryURL.Reveal()})
		},
	}
}
