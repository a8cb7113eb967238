package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
)

// Input names the configurations to migrate.
type Input struct {
	// Maestro, Arranger and Song are a file or a folder each; "" for the product's variables in Environ.
	Maestro, Arranger, Song string
	// Environ is a list of NAME=value, such as os.Environ returns.
	Environ []string
}

// Output is a configuration file of tutti.
type Output struct {
	// File is YAML that tutti starts with.
	File []byte
	// Warnings name the decisions that are left to the user, one sentence each, without secrets.
	Warnings []string
}

// found is the configuration that was read of one product.
type found struct {
	product
	source string
	// variables are sorted by name.
	variables  []variable
	catalogues []catalogue
	warnings   []string
	// used are the names of the variables from which a key was set.
	used map[string]bool
}

// migration collects the keys of all products.
type migration struct {
	foreign *config.Foreign
	// product is the one whose variables are read.
	product string
	// origin maps each path in tutti's configuration to the product's key from which it was set.
	origin   map[string]string
	warnings []string
}

// Migrate makes a file from in. It returns an error when nothing is found, or a file cannot be read.
func Migrate(in Input) (Output, error) {
	products, warnings, err := readAll(in)
	if err != nil {
		return Output{}, err
	}
	m := &migration{foreign: config.NewForeign(), origin: map[string]string{}, warnings: warnings}
	for i := range products {
		m.read(&products[i])
	}
	for i := range products {
		m.convert(&products[i])
	}
	m.decisions(products)
	file, err := m.file(products)
	return Output{File: file, Warnings: m.warnings}, err
}

func (m *migration) warn(format string, args ...any) {
	m.warnings = append(m.warnings, sentence(fmt.Sprintf(format, args...)))
}

// read adds the keys that an environment of the product sets.
func (m *migration) read(p *found) {
	m.product = p.name
	variables := m.withoutConflicts(p)
	for _, warning := range p.read(m.foreign, environ(variables)) {
		m.warn("%s: %s", p.name, warning)
	}
	for _, leaf := range m.foreign.Keys() {
		if _, known := m.origin[leaf.Path]; !known {
			name := strings.TrimPrefix(leaf.Source, "variable ")
			m.origin[leaf.Path] = m.originOf(p.shown(name))
			p.used[name] = true
		}
	}
}

// withoutConflicts returns the variables of p without those of an index that another product sets otherwise, credentials included.
func (m *migration) withoutConflicts(p *found) []variable {
	own := config.NewForeign()
	p.read(own, environ(p.variables))
	others := values(m.foreign)
	var dropped []string
	for _, leaf := range own.Keys() {
		if other, set := others[leaf.Path]; leaf.Path == "index.url" && set && other != fmt.Sprint(leaf.Value) {
			m.warn("index.url is %s from %s: %s of %s is %s, and not used", masked(other), m.origin[leaf.Path],
				strings.TrimPrefix(leaf.Source, "variable "), p.name, masked(fmt.Sprint(leaf.Value)))
			dropped = []string{"index.url", "index.username", "index.password"}
		}
	}
	return slices.DeleteFunc(slices.Clone(p.variables), func(v variable) bool {
		k := p.row(v.name)
		return k != nil && slices.Contains(dropped, k.to)
	})
}

// convert adds the keys that the product's table converts itself.
func (m *migration) convert(p *found) {
	m.product = p.name
	for _, v := range p.variables {
		k := p.row(v.name)
		if k == nil {
			continue
		}
		if k.by != nil && k.by(m, v, k.to) {
			p.used[v.name] = true
		}
		if k.ask != "" && v.value != k.standard && !p.inCatalogues(k.member) {
			m.warn("%s: %s is %s: %s", p.name, v, k.value(v), k.ask)
		}
	}
}

func (m *migration) originOf(v variable) string { return m.product + ": " + v.String() }

// set sets the key at path, unless it is set already.
func (m *migration) set(path, text string, v variable) bool {
	if _, known := m.origin[path]; known {
		return false
	}
	m.foreign.Set(path, text)
	m.origin[path] = m.originOf(v)
	return true
}

func values(f *config.Foreign) map[string]string {
	texts := map[string]string{}
	for _, leaf := range f.Keys() {
		texts[leaf.Path] = fmt.Sprint(leaf.Value)
	}
	return texts
}

// tokens reports whether requests need a token.
func (m *migration) tokens() bool { return values(m.foreign)["auth.mode"] == config.ModeToken }

// repositories returns the number of repositories.
func (m *migration) repositories() int {
	n := 0
	for _, leaf := range m.foreign.Keys() {
		if strings.HasPrefix(leaf.Path, setting.Indexed("repositories", n)+".") {
			n++
		}
	}
	return n
}

// decisions warns of what the products leave to the user.
func (m *migration) decisions(products []found) {
	set := values(m.foreign)
	given := func(name string) bool {
		return slices.ContainsFunc(products, func(p found) bool { return p.name == name })
	}
	if listen := cmp.Or(set["server.listen"], config.Default().Server.Listen); !m.tokens() {
		m.warn("server.listen is %s, which only this machine reaches, because no tokens are required: for other machines set auth.mode: token, "+
			"or, where the network restricts access, auth.allowInsecure: true, an address such as 0.0.0.0:8080, and server.hosts to the names "+
			"that clients use", listen)
	} else if set["server.listen"] == "" {
		m.warn("server.listen is %s: set the address that clients use", listen)
	}
	for i := range m.repositories() {
		at := setting.Indexed("repositories", i)
		if given("Song") && set[at+".type"] == string(core.TypeSong) {
			m.warn("%s reads Song at %s: where tutti replaces this Song, copy its data with tutti migrate song, set type: local, and remove url "+
				"and notifications", at, masked(set[at+".url"]))
		}
	}
	if !given("Arranger") {
		return
	}
	if m.tokens() && set["auth.defaultAccess"] == "" {
		m.warn("catalogues without an access.json need a token, but Arranger shows them to anyone: auth.defaultAccess: public does the same")
	}
	if set["server.cors.origins"] == "" {
		m.warn("Arranger lets browsers read its responses on pages of any origin: list the portal's in server.cors.origins")
	}
	if m.repositories() == 0 && set["index.url"] != "" {
		m.warn("no repository is configured: the built-in one makes the alias analyses in this Elasticsearch")
	}
}

// environ returns the variables as os.Environ does.
func environ(variables []variable) []string {
	list := make([]string, len(variables))
	for i, v := range variables {
		list[i] = strings.ReplaceAll(v.name, "=", "_") + "=" + v.value
	}
	return list
}

// shown returns the variable of a name.
func (p *found) shown(name string) variable {
	i := slices.IndexFunc(p.variables, func(v variable) bool { return v.name == name })
	if i < 0 {
		return variable{name: name}
	}
	return p.variables[i]
}
