package lyric

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
)

// lecternSchema is an entity of a dictionary.
type lecternSchema struct {
	Name   string `json:"name"`
	Fields []struct {
		Name      string `json:"name"`
		ValueType string `json:"valueType"`
	} `json:"fields"`
	Restrictions struct {
		ForeignKey []foreignKey `json:"foreignKey"`
	} `json:"restrictions"`
}

// lecternDictionary is a dictionary as a Lectern returns it.
type lecternDictionary struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Schemas []lecternSchema `json:"schemas"`
}

// Declared returns what the category's dictionary declares, as the Lectern of Config.DictionaryURL has it by name and version. Without that
// URL, and if the category has no dictionary or the Lectern refuses the request, nothing is declared.
func (c *Client) Declared(ctx context.Context) (types *mapping.Types, none string, err error) {
	if c.lectern == nil {
		return nil, "", nil
	}
	name, version, err := c.dictionaryOf(ctx)
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		return nil, "the category has no dictionary", nil
	}
	found, err := c.readLectern(ctx, name, version)
	if status, refused := upstream.Refused(err); refused {
		return nil, fmt.Sprintf("the Lectern of dictionaryUrl answered the request for version %s of the dictionary %s with status %d", version, name, status), nil
	}
	if err != nil {
		return nil, "", err
	}
	central, _, err := c.centralOf(ctx, "")
	if err != nil {
		return nil, "", err
	}
	return typesOf(found, central), "", nil
}

// dictionaryOf returns the name and the version of the category's dictionary, "" for none.
func (c *Client) dictionaryOf(ctx context.Context) (name, version string, err error) {
	r := upstream.Request{Segments: []string{"category", c.category}, Error: protocolError}
	err = c.calls.Document(ctx, r, "category", func(document []byte) error {
		var category struct {
			Dictionary struct{ Name, Version string } `json:"dictionary"`
		}
		if json.Unmarshal(document, &category) != nil {
			return upstream.FormatError("category")
		}
		name, version = category.Dictionary.Name, category.Dictionary.Version
		return nil
	})
	return name, version, err
}

// readLectern requests a dictionary.
func (c *Client) readLectern(ctx context.Context, name, version string) (found lecternDictionary, err error) {
	r := upstream.Request{
		Query: "name=" + url.QueryEscape(name) + "&version=" + url.QueryEscape(version), Segments: []string{"dictionaries"},
	}
	err = c.lectern.Document(ctx, r, "dictionary", func(document []byte) error {
		var all []lecternDictionary
		if json.Unmarshal(document, &all) != nil {
			return upstream.FormatError("dictionary")
		}
		at := slices.IndexFunc(all, func(d lecternDictionary) bool { return d.Name == name && d.Version == version })
		if at < 0 || all[at].Schemas == nil {
			return core.WrapError(core.CodeUnavailable, "the Lectern did not return version "+version+" of the dictionary "+name, upstream.ErrFormat)
		}
		found = all[at]
		return nil
	})
	return found, err
}

// typesOf returns what a dictionary declares about records of the central entity, or of all entities if it is "": of the record itself below
// data, and of the records that contain it and that it contains below their names.
func typesOf(dictionary lecternDictionary, central string) *mapping.Types {
	var b mapping.TypesBuilder
	d := declaring{to: &b, source: dictionary.Name + " " + dictionary.Version, all: dictionary.Schemas}
	for i := range d.all {
		if central != "" && d.all[i].Name != central {
			continue
		}
		d.fields(&d.all[i], "data")
		d.parents(&d.all[i], "data", nil)
		for _, name := range []func(string) string{func(entity string) string { return entity }, plural} { // Lyric can be set to either
			d.children(&d.all[i], "data", name, nil)
		}
	}
	return b.Types()
}

// declaring declares the fields of a dictionary.
type declaring struct {
	to     *mapping.TypesBuilder
	source string
	all    []lecternSchema
}

// fields declares the fields of an entity's record at a path.
func (d *declaring) fields(of *lecternSchema, path string) {
	for _, f := range of.Fields {
		switch as := mapping.JSONType(f.ValueType); as {
		case mapping.JSONString, mapping.JSONInteger, mapping.JSONNumber, mapping.JSONBoolean:
			d.to.Declare(path+"."+f.Name, as, d.source+" "+of.Name)
		case mapping.JSONObject, mapping.JSONDate: // a dictionary has neither
		}
	}
}

// children declares the fields of the records that refer to an entity's record, which contains them under the names of their entities.
// above are the entities that contain it.
func (d *declaring) children(of *lecternSchema, path string, name func(entity string) string, above []string) {
	above = append(above, of.Name)
	for i := range d.all {
		child := &d.all[i]
		if slices.Contains(above, child.Name) || !slices.ContainsFunc(child.Restrictions.ForeignKey, func(key foreignKey) bool { return key.Schema == of.Name }) {
			continue
		}
		below := path + "." + name(child.Name)
		d.fields(child, below)
		d.children(child, below, name, above)
	}
}

// parents declares the fields of the records that an entity's record refers to, which it contains too.
func (d *declaring) parents(of *lecternSchema, path string, below []string) {
	below = append(below, of.Name)
	for _, key := range of.Restrictions.ForeignKey {
		at := slices.IndexFunc(d.all, func(s lecternSchema) bool { return s.Name == key.Schema })
		if at < 0 || slices.Contains(below, key.Schema) {
			continue
		}
		path := path + "." + key.Schema
		d.fields(&d.all[at], path)
		d.parents(&d.all[at], path, below)
	}
}

// plural returns the regular plural of an English word.
func plural(word string) string {
	stem := func(n int) string { return word[:len(word)-n] }
	ends := func(endings ...string) bool {
		return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(word, ending) })
	}
	switch {
	case ends("is"):
		return stem(2) + "es"
	case ends("ay", "ey", "oy", "uy"):
		return word + "s"
	case ends("y"):
		return stem(1) + "ies"
	case ends("ss", "x", "z", "ch", "sh"):
		return word + "es"
	case ends("s"): // it is one
		return word
	default:
		return word + "s"
	}
}
