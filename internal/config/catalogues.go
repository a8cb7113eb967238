package config

import (
	"errors"
	"io"
	"os"

	"tutti/internal/config/setting"
)

// Catalogues configures what can be searched (CONTRACT section 3).
type Catalogues struct {
	// Dir is the directory of the catalogues' configuration; empty creates one catalogue for each index.
	Dir string
	// DisableGraphQLIntrospection disables __schema and __type in all catalogues; nil when not set.
	DisableGraphQLIntrospection *bool
	// Production reports that NODE_ENV is production, which disables them unless configured otherwise. It has no key in the file.
	Production bool
}

func (c *Catalogues) key() setting.Key {
	return setting.Object("catalogues", "Search.",
		setting.Text("dir", &c.Dir, "", "Directory of the catalogues' configuration in Arranger's format; empty creates one catalogue for each index."),
		setting.Choice("disableGraphQLIntrospection", &c.DisableGraphQLIntrospection,
			"True disables GraphQL introspection in every catalogue, false leaves it to each catalogue; when not set, NODE_ENV=production "+
				"disables it in catalogues that do not enable it."))
}

// validate reports a directory that cannot be read. given is its source.
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
