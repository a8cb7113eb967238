package config

import (
	"errors"
	"io"
	"os"

	"tutti/internal/base/setting"
)

// Catalogues configures the searchable catalogues (CONTRACT section 3).
type Catalogues struct {
	// Dir is the directory with the configuration of the catalogues. If it is empty, each index has a catalogue with default settings.
	Dir string
	// DisableGraphQLIntrospection disables __schema and __type in all catalogues when true; false and nil leave it to each catalogue.
	DisableGraphQLIntrospection *bool
	// Production is set when NODE_ENV is production. It disables introspection in catalogues that do not enable it, unless
	// DisableGraphQLIntrospection is set. It has no key in the file.
	Production bool
}

func (c *Catalogues) key() setting.Key {
	return setting.Object("catalogues", "Searchable catalogues.",
		setting.Text("dir", &c.Dir, "", "Directory with the configuration of the catalogues in Arranger's format. If empty, each index has a catalogue with default settings."),
		setting.Choice("disableGraphQLIntrospection", &c.DisableGraphQLIntrospection,
			"True disables GraphQL introspection in all catalogues, false leaves it to the configuration of each catalogue. If not set, "+
				"NODE_ENV=production disables it in catalogues that do not enable it."))
}

// validate reports a directory that cannot be read. given is the section in the configuration file.
func (c *Catalogues) validate(given *setting.Node, f *setting.ErrorList) {
	if c.Dir == "" {
		return
	}
	const hint = "set the directory that holds one catalogue's JSON files, or a sub-directory for each catalogue"
	at, where := "catalogues.dir", sourceOf(given, "dir")
	switch info, err := os.Stat(c.Dir); {
	case err != nil:
		f.Add(at, where, hint, "%s cannot be read: %s", c.Dir, setting.Reason(err))
	case !info.IsDir():
		f.Add(at, where, hint, "%s is not a directory", c.Dir)
	default:
		if err := listable(c.Dir); err != nil {
			f.Add(at, where, "tutti's user needs read access", "%s cannot be read: %s", c.Dir, setting.Reason(err))
		}
	}
}

// listable returns the error of listing a directory, nil when it can be listed.
func listable(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if _, err := folder.Readdirnames(1); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
