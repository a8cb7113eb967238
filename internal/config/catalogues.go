package config

import (
	"errors"
	"io"
	"os"
)

// Catalogues says what can be searched (CONTRACT section 3).
type Catalogues struct {
	// Dir is the folder of the catalogues' configuration; empty gives each index that is written to a catalogue of its own.
	Dir string
	// DisableGraphQLIntrospection reports whether __schema and __type are refused in all of them; nil when nobody said.
	DisableGraphQLIntrospection *bool
	// Production tells that NODE_ENV is production, which refuses them unless somebody says otherwise. It is no key of the
	// file.
	Production bool
}

func (c *Catalogues) key() key {
	return object("catalogues", "What can be searched.",
		text("dir", &c.Dir, "", "Folder of the catalogues' configuration, as Arranger has it; empty gives each index a catalogue of its own."),
		choice("disableGraphQLIntrospection", &c.DisableGraphQLIntrospection,
			"True refuses the introspection of GraphQL in every catalogue, false leaves it to each; unless it is given, NODE_ENV=production "+
				"refuses it where a catalogue does not allow it."))
}

// validate notes a folder that cannot be read. given tells where it was named.
func (c *Catalogues) validate(given *node, f *faults) {
	if c.Dir == "" {
		return
	}
	const hint = "give the folder that holds the catalogues' JSON files, or their folders"
	at, where := "catalogues.dir", whereOf(given, "dir")
	switch info, err := os.Stat(c.Dir); {
	case err != nil:
		f.add(at, where, hint, "%s cannot be read: %s", c.Dir, reason(err))
	case !info.IsDir():
		f.add(at, where, hint, "%s is no folder", c.Dir)
	default:
		if err := listable(c.Dir); err != nil {
			f.add(at, where, "let tutti's user read it", "%s cannot be read: %s", c.Dir, reason(err))
		}
	}
}

// listable returns why the names in a folder cannot be read.
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
