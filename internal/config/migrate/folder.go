package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// arrangerName is the name of the product with catalogues, configsPath its variable for their folder.
const (
	arrangerName = "Arranger"
	configsPath  = "CONFIGS_PATH"
)

// catalogue is what one catalogue's JSON files contain.
type catalogue struct {
	folder string
	names  []string
	files  map[string][]byte
}

// loadArranger reads a .env file, or a folder that holds one, the files of a catalogue or folders of catalogues.
func (p *found) loadArranger(path string, _ []string) error {
	folder, names, err := list(path)
	if err != nil {
		return err
	}
	alone := len(names) == 1 && folder != path
	var variables []variable
	for _, name := range names {
		if file := filepath.Join(folder, name); alone || isEnv(name, p.name) {
			more, err := readEnv(file)
			if err != nil {
				return err
			}
			variables = append(variables, more...)
		}
	}
	p.variables = combined(variables)
	if !alone {
		p.loadCatalogues(folder)
		if len(p.catalogues) > 0 {
			p.add(variable{name: configsPath, value: folder, shown: p.describe()})
			return nil
		}
	}
	// The folder is relative to the file that names it.
	configs := variable{name: configsPath, value: "configs", shown: "the default of CONFIGS_PATH"}
	if i := slices.IndexFunc(p.variables, func(v variable) bool { return v.name == configsPath }); i >= 0 {
		configs = p.variables[i]
	}
	if !filepath.IsAbs(configs.value) {
		configs.value = filepath.Join(folder, configs.value)
	}
	p.loadCatalogues(configs.value)
	if len(p.variables) > 0 {
		p.add(configs)
	}
	return nil
}

// add replaces a variable.
func (p *found) add(v variable) { p.variables = combined(p.variables, []variable{v}) }

// describe names the JSON files of all catalogues.
func (p *found) describe() string {
	var names []string
	for _, c := range p.catalogues {
		names = append(names, c.folder+" ("+strings.Join(c.names, ", ")+")")
	}
	return strings.Join(names, ", ")
}

// loadCatalogues reads a folder of catalogues, and the keys in it that tutti reads from its configuration file instead. It ignores a
// folder that cannot be read: the check of the configuration file reports it.
func (p *found) loadCatalogues(dir string) {
	if c := p.readCatalogue(dir); len(c.names) > 0 {
		p.catalogues = []catalogue{c}
	} else {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, entry := range entries {
			if c := p.readCatalogue(filepath.Join(dir, entry.Name())); len(c.names) > 0 {
				p.catalogues = append(p.catalogues, c)
			}
		}
	}
	for _, k := range p.keys {
		if k.member != "" && k.note != inCatalogue {
			p.addMember(k)
		}
	}
}

func (p *found) readCatalogue(dir string) catalogue {
	c := catalogue{folder: dir, files: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return c
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.EqualFold(filepath.Ext(name), ".json") || strings.HasPrefix(name, ".") {
			continue
		}
		c.names = append(c.names, name)
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !gjson.ValidBytes(data) {
			p.warnings = append(p.warnings, sentence(fmt.Sprintf("%s is not readable JSON: see tutti catalogues check", filepath.Join(dir, name))))
			continue
		}
		c.files[name] = data
	}
	return c
}

// addMember adds the value of a key in the files of catalogues, which replaces the variable.
func (p *found) addMember(k key) {
	var first variable
	for _, c := range p.catalogues {
		for _, name := range c.names {
			value := gjson.GetBytes(c.files[name], k.member)
			v := variable{name: k.name, value: value.String(), shown: k.member + " in " + filepath.Join(c.folder, name)}
			switch {
			case !value.Exists() || v.value == "":
			case first.name == "":
				first = v
				p.add(v)
			case first.value != v.value:
				p.warnings = append(p.warnings, sentence(fmt.Sprintf("%s differs from %s, which is used: tutti has one setting for all catalogues", v, first)))
			}
		}
	}
}

// inCatalogues reports whether every catalogue has a member, given by one of its names, separated by |.
func (p *found) inCatalogues(member string) bool {
	if member == "" || len(p.catalogues) == 0 {
		return false
	}
	return !slices.ContainsFunc(p.catalogues, func(c catalogue) bool {
		for _, data := range c.files {
			for name := range strings.SplitSeq(member, "|") {
				if gjson.GetBytes(data, name).Exists() {
					return false
				}
			}
		}
		return true
	})
}
