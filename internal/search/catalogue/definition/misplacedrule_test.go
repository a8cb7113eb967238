package definition_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/search/catalogue/definition"
)

const (
	rule         = `{"field": "studyId", "scope": "{value}.READ"}`
	alone        = " is not read: an access rule is valid only in access.json"
	much         = " has a name similar to access.json, the only file for an access rule"
	elseName     = "rename it to access.json if it is a rule, and otherwise give it another name"
	moveDataHint = "move the rule to access.json, or remove it"
)

// wantClosed requires a violation and a rule that denies everyone.
func wantClosed(t *testing.T, d definition.Definition, pointer, message, hint string) {
	t.Helper()
	wantFault(t, d, pointer, message, hint)
	if d.Access == nil || *d.Access != (definition.AccessRule{}) {
		t.Errorf("a rule that was perhaps meant must deny everyone: %+v", d.Access)
	}
}

func TestNamesLikeAccess(t *testing.T) {
	for _, name := range []string{
		"access.jsonc", "access.json5", "access.yaml", "access.yml", "access.json.txt", "access", "access.json ", "ACCESS.JSON.bak", "Access.Yaml",
		".access.json", ".access", "..access.json", ". access.json", ".acces.json", ".acc.ess.json", "access.json.", "access_json", "access.json/rule.json",
		"access/access.json", "acces.yaml", "acess.json.txt", "acccess.yaml", "axcess.txt", "acecss.yaml", " access.txt", "\u200baccess.yaml",
		"access.json~", ".access.json.swp", ".#access.json",
	} {
		top, _, isFolder := strings.Cut(name, "/")
		t.Run(name+" in a folder", func(t *testing.T) {
			set := load(t, files{"a/base.json": sound, "genes/base.json": sound, "genes/" + name: rule}, definition.Options{})
			if strings.EqualFold(top, "access.json") { // which is read
				wantClosed(t, named(t, set, "genes"), "", "genes/access.json is a folder, not a file", "put a file there, or remove the folder")
			} else {
				wantClosed(t, named(t, set, "genes"), "", "genes/"+strings.ReplaceAll(top, "\u200b", "_")+alone, elseName)
			}
			if a := named(t, set, "a"); a.Err != nil || a.Access != nil || a.Warnings != nil || len(set.Definitions) != 2 {
				t.Errorf("%+v", set)
			}
		})
		if isFolder {
			continue
		}
		t.Run(name+" at the top", func(t *testing.T) {
			wantClosed(t, only(t, files{"base.json": sound, name: rule}), "", strings.ReplaceAll(top, "\u200b", "_")+alone, elseName)
			set := load(t, files{"genes/base.json": sound, name: rule}, definition.Options{})
			wantClosed(t, named(t, set, "genomics"), "", strings.ReplaceAll(top, "\u200b", "_")+alone, elseName)
			if d := named(t, set, "genes"); d.Err != nil || d.Access != nil {
				t.Errorf("%+v", d)
			}
		})
	}
	for _, name := range []string{"README.md", "excess.txt", "process.yaml", ".git/config", "base.json~", "acc.txt", "success.log", "ascent.txt"} {
		t.Run(name, func(t *testing.T) {
			if d := only(t, files{"genes/base.json": sound, "genes/" + name: rule}); d.Err != nil || d.Access != nil {
				t.Errorf("%v, %+v", d.Err, d.Access)
			}
		})
	}
}

func TestCataloguesNamedLikeAccess(t *testing.T) {
	t.Run("folder of the top folder's name", func(t *testing.T) {
		set := load(t, files{"genomics/base.json": sound, "access.yaml": rule}, definition.Options{})
		wantClosed(t, named(t, set, "genomics-2"), "", "access.yaml"+alone, elseName)
		if d := named(t, set, "genomics"); d.Err != nil {
			t.Errorf("a sound catalogue gives way: %v", d.Err)
		}
	})
	set := load(t, files{"base.json": sound, "accessions/base.json": sound, "access/base.json": sound, "acces.json/base.json": sound}, definition.Options{})
	if diff := cmp.Diff([]string{"acces.json", "access", "accessions", "genomics"}, ids(set)); diff != "" {
		t.Fatal(diff)
	}
	for _, d := range set.Definitions {
		if d.Err != nil || d.Access != nil {
			t.Errorf("%s: %v, %+v", d.ID, d.Err, d.Access)
		}
	}
	t.Run("empty", func(t *testing.T) {
		// A container runtime creates an empty folder for a missing file that it should mount.
		for _, name := range []string{"access.yaml", "access"} {
			fsys := files{"base.json": sound}.fs()
			fsys[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			set, err := definition.LoadFS(fsys, "genomics", definition.Options{})
			if err != nil {
				t.Fatal(err)
			}
			wantClosed(t, named(t, set, "genomics"), "", name+alone, elseName)
			delete(fsys, "base.json")
			fsys["genes/base.json"] = &fstest.MapFile{Data: []byte(sound)}
			if set, err = definition.LoadFS(fsys, "genomics", definition.Options{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{name, "genes"}, ids(set)); diff != "" {
				t.Errorf("no catalogue at the top, but %s", diff)
			}
		}
	})
	t.Run("link that leads nowhere", func(t *testing.T) {
		dir := write(t, files{"base.json": sound, "genes/base.json": sound})
		link(t, "nowhere", filepath.Join(dir, "access.yaml"))
		link(t, "nowhere", filepath.Join(dir, "genes", "access.yaml"))
		set, err := definition.Load(dir, definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantClosed(t, named(t, set, "genomics"), "", "access.yaml"+alone, elseName)
		wantClosed(t, named(t, set, "genes"), "", "genes/access.yaml"+alone, elseName)
	})
}

// TestBesideAccess: backups of editors and copies beside a rule are harmless, another rule is an error.
func TestBesideAccess(t *testing.T) {
	for _, name := range []string{"access.json~", "access.json.bak", ".access.json.swp", ".#access.json", "._access.json", "access.json (copy)", "Access.JSON.orig"} {
		t.Run(name, func(t *testing.T) {
			for _, f := range []files{{"base.json": sound, "access.json": rule, name: "{}"}, {"g/base.json": sound, "g/access.json": rule, "g/" + name: "{}"}} {
				d := only(t, f)
				if d.Err != nil || d.Access == nil || d.Access.Field != "studyId" {
					t.Errorf("%v, %+v", d.Err, d.Access)
				}
				if len(d.Warnings) != 1 || !strings.HasSuffix(d.Warnings[0], name+" is not read: access.json applies") {
					t.Errorf("%q", d.Warnings)
				}
			}
		})
	}
	for _, name := range []string{"access.jsonc", ".access.json", "access.json ", "access.yaml", "access", "access.json5"} {
		t.Run(name, func(t *testing.T) {
			d := only(t, files{"base.json": sound, "access.json": rule, name: rule})
			wantFault(t, d, "", name+alone, elseName)
		})
	}
	t.Run("without a catalogue", func(t *testing.T) {
		d := only(t, files{"genes/access.yaml": rule})
		wantClosed(t, d, "", "genes/access.yaml"+alone, elseName)
		if len(d.Err.Violations) != 2 || d.Err.Violations[1].Message != "genes contains no JSON file" {
			t.Errorf("%+v", d.Err.Violations)
		}
	})
}

func TestRulesInOtherFiles(t *testing.T) {
	const (
		holds   = " contains an access rule, which is valid only in access.json"
		belongs = " belongs to an access rule, which is valid only in access.json"
		rename  = "rename it to access.json"
	)
	tests := map[string]struct {
		name, text             string
		pointer, message, hint string
	}{
		"whole":          {"acces.json", rule, "", "genes/acces.json" + holds, rename},
		"any name":       {"rules.json", rule, "", "genes/rules.json" + holds, rename},
		"misspelt scope": {"acces.json", `{"field": "studyId", "scop": "{value}.READ"}`, "", "genes/acces.json" + holds, rename},
		"misspelt field": {"rules.json", `{"feild": "studyId", "scope": "{value}.READ"}`, "", "genes/rules.json" + holds, rename},
		"field is null":  {"acces.json", `{"field": null, "scop": "{value}.READ"}`, "", "genes/acces.json" + holds, rename},
		"public alone":   {"rules.json", `{"public": null}`, "", "genes/rules.json" + holds, rename},
		"in capitals":    {"rules.json", `{"Field": "studyId"}`, "", "genes/rules.json" + holds, rename},
		"with a space":   {"rules.json", `{"scope ": "studyId"}`, "", "genes/rules.json" + holds, rename},
		"all misspelt":   {"acces.json", `{"feild": "studyId", "scop": "{value}.READ"}`, "", "genes/acces.json" + much, elseName},
		"nothing":        {"access-rule.json", `{}`, "", "genes/access-rule.json" + much, elseName},
		"partly known":   {"acess.json", `{"description": "Who may.", "feild": "studyId"}`, "", "genes/acess.json" + much, elseName},
		"space in front": {" access.json", `{"feild": 1}`, "", "genes/ access.json" + much, elseName},
		"beside others":  {"table.json", `{"table": {}, "scope": "{value}.READ"}`, "/scope", "/scope in genes/table.json" + belongs, moveDataHint},
		"access":         {"table.json", `{"table": {}, "access": ` + rule + `}`, "/access", "/access in genes/table.json" + belongs, moveDataHint},
		"access is null": {"table.json", `{"table": {}, "access": null}`, "/access", "/access in genes/table.json" + belongs, moveDataHint},
		"accessRule":     {"table.json", `{"table": {}, "accessRule": ` + rule + `}`, "/accessRule", "/accessRule in genes/table.json" + belongs, moveDataHint},
		"acces":          {"table.json", `{"table": {}, "acces": ` + rule + `}`, "/acces", "/acces in genes/table.json" + belongs, moveDataHint},
		"odd and very long": {
			"table.json", `{"table": {}, "access` + strings.Repeat("x/", 1e5) + `": 1}`,
			"/access" + strings.Repeat("x~1", 24) + "…", "/access" + strings.Repeat("x~1", 24) + "… in genes/table.json" + belongs, moveDataHint,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := only(t, files{"genes/base.json": sound, "genes/" + test.name: test.text})
			wantClosed(t, d, test.pointer, test.message, test.hint)
			if d.DocumentType != "analysis" || len(d.Err.Violations) != 1 {
				t.Errorf("%+v, %+v", d, d.Err.Violations)
			}
		})
	}
	t.Run("in base.json", func(t *testing.T) {
		wantClosed(t, only(t, and(`"access": `+rule)), "/access", "/access in genes/base.json"+belongs, moveDataHint)
		wantClosed(t, only(t, files{"genes/base.json": `{"scope": "x"}`}), "/scope", "/scope in genes/base.json"+belongs, moveDataHint)
		d := only(t, and(`"field": "studyId", "scope": "{value}", "public": {}`))
		if wantClosed(t, d, "/field", "/field in genes/base.json"+belongs, moveDataHint); len(d.Err.Violations) != 3 || d.Warnings != nil {
			t.Errorf("%+v, %q", d.Err.Violations, d.Warnings)
		}
	})
	t.Run("beside access.json", func(t *testing.T) {
		for _, name := range []string{"a.json", "z.json"} {
			d := only(t, files{"base.json": sound, "access.json": rule, name: rule})
			if wantFault(t, d, "", name+holds, rename); len(d.Err.Violations) != 1 {
				t.Errorf("%+v", d.Err.Violations)
			}
		}
	})
	t.Run("what is none", func(t *testing.T) {
		for name, text := range map[string]string{
			"accession.json": `{"extended": [{"fieldName": "scope"}]}`, "extended.json": `{"extended": [{"field": "public"}]}`, "z.json": `{"fields": 1, "successor": 2}`,
		} {
			if d := only(t, files{"base.json": sound, name: text}); d.Err != nil || d.Access != nil {
				t.Errorf("%s: %v, %+v", name, d.Err, d.Access)
			}
		}
	})
}

func TestPartlyRestricted(t *testing.T) {
	const other = `{"documentType": "donor", "esIndex": "donors"}`
	many := files{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many[id+"/base.json"] = sound
	}
	many["g/access.json"] = rule
	tests := map[string]struct {
		files files
		want  []string
	}{
		"one of two": {
			files{"open/base.json": sound, "shut/base.json": sound, "shut/access.json": rule},
			[]string{`index "analyses" has an access rule in "shut" but none in "open", whose readers see all documents`},
		},
		"a broken rule": {
			files{"open/base.json": withID("o/p"), "shut/base.json": sound, "shut/access.json": "{"},
			[]string{`index "analyses" has an access rule in "shut" but none in "o/p", whose readers see all documents`},
		},
		"two indices": {
			files{
				"a/base.json": sound, "b/base.json": sound, "b/access.json": rule, "c/base.json": other, "d/base.json": other, "d/access.json": rule,
				"e/base.json": other,
			},
			[]string{
				`index "analyses" has an access rule in "b" but none in "a", whose readers see all documents`,
				`index "donors" has an access rule in "d" but none in "c" and "e", whose readers see all documents`,
			},
		},
		"many":     {many, []string{`index "analyses" has an access rule in "g" but none in "a", "b", "c", "d", "e" and 1 more, whose readers see all documents`}},
		"both":     {files{"a/base.json": sound, "a/access.json": rule, "b/base.json": sound, "b/access.json": rule}, nil},
		"neither":  {files{"a/base.json": sound, "b/base.json": sound}, nil},
		"another":  {files{"a/base.json": sound, "a/access.json": rule, "b/base.json": other}, nil},
		"failed":   {files{"a/base.json": sound, "a/access.json": rule, "b/base.json": sound, "b/table.json": "{"}, nil},
		"no index": {files{"a/base.json": `{}`, "a/access.json": rule, "b/base.json": `{}`}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, load(t, test.files, definition.Options{}).Warnings); diff != "" {
				t.Errorf("want, got: %s", diff)
			}
		})
	}
}

// FuzzNames: for any name, a file with a rule is a rule or an error.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"access.json", "access.jsonc", ".access.json", "acces.json", "ACCESS", "access.json ", "rules.json", "lost+found"} {
		f.Add(name, "field", "scope")
	}
	f.Fuzz(func(t *testing.T, name, field, scope string) {
		if name == "base.json" || name == "." || strings.Contains(name, "/") || !fs.ValidPath(name) {
			t.Skip()
		}
		set, err := definition.LoadFS(fstest.MapFS{
			"genes/base.json": &fstest.MapFile{Data: []byte(sound)}, "a/base.json": &fstest.MapFile{Data: []byte(sound)},
			"genes/" + name: &fstest.MapFile{Data: []byte(`{"` + field + `": "studyId", "` + scope + `": "{value}.READ"}`)},
		}, "genomics", definition.Options{})
		if err != nil || len(set.Definitions) != 2 {
			t.Fatalf("%v: %v", err, ids(set))
		}
		if a := set.Definitions[0]; a.Err != nil || a.Access != nil || a.Warnings != nil {
			t.Errorf("a neighbour: %+v", a)
		}
		genes := named(t, set, "genes")
		isRead := strings.HasSuffix(strings.ToLower(name), ".json") && !strings.HasPrefix(name, ".")
		looks := !isRead && strings.HasPrefix(strings.TrimLeft(strings.ToLower(strings.TrimSpace(name)), ". "), "access")
		isRule := isRead && slices.Contains([]string{"field", "scope", "public", "access"}, field)
		if (looks || isRule) && genes.Err == nil && (genes.Access == nil || genes.Access.Field == "") {
			t.Errorf("%q with %q and %q leaves the catalogue open", name, field, scope)
		}
	})
}

// TestRuleInADeeperFolder: an unread rule in a deeper folder is an error; other deeper folders are harmless.
func TestRuleInADeeperFolder(t *testing.T) {
	set := load(t, files{
		"a/base.json": sound, "genes/base.json": sound, "genes/rules/access.json": rule, "plain/base.json": sound, "plain/old/base.json": sound,
	}, definition.Options{})
	wantClosed(t, named(t, set, "genes"), "", "genes/rules/access.json is not read: an access rule must be beside the files of its catalogue",
		"move it up, or remove it")
	for _, id := range []string{"a", "plain"} {
		if d := named(t, set, id); d.Err != nil || d.Access != nil {
			t.Errorf("%s: %+v", id, d.Err)
		}
	}
}
