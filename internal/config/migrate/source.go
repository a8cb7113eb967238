package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tutti/internal/base/order"
	"tutti/internal/base/setting"
	"tutti/internal/core"
)

// readAll reads the products for which in has a path or environment variables, and returns warnings.
func readAll(in Input) (products []found, warnings []string, err error) {
	for _, one := range []struct {
		product
		path string
		load func(p *found, path string, environ []string) error
	}{
		{song(), in.Song, (*found).loadSpring},
		{maestro(), in.Maestro, (*found).loadSpring},
		{arranger(), in.Arranger, (*found).loadArranger},
	} {
		p := found{product: one.product, source: one.path, used: map[string]bool{}}
		if one.path == "" {
			p.loadEnviron(in.Environ)
		} else if err := one.load(&p, one.path, in.Environ); err != nil {
			return nil, nil, err
		} else if len(p.variables) == 0 {
			return nil, nil, core.NewError(core.CodeInvalid, fmt.Sprintf("%s contains no key of %s", one.path, p.name))
		}
		if len(p.variables) > 0 {
			products = append(products, p)
			warnings = append(warnings, p.warnings...)
		}
	}
	if len(products) == 0 {
		return nil, nil, &core.Error{
			Code: core.CodeInvalid, Message: "there is no configuration of a Maestro, an Arranger or a Song to migrate",
			Hint: "name a file or a folder with --maestro, --arranger or --song, or set the variables of one of them in the environment",
		}
	}
	return products, warnings, nil
}

// loadEnviron takes the variables of the product's table from the environment, if one of them is only the product's.
func (p *found) loadEnviron(environ []string) {
	p.source = "the environment"
	var list []variable
	ours := false
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || p.row(name) == nil {
			continue
		}
		list = append(list, variable{name: name, value: value})
		ours = ours || slices.ContainsFunc(p.marks, func(mark string) bool { return strings.HasPrefix(name, mark) })
	}
	if !ours {
		return
	}
	p.variables = combined(list)
	if i := slices.IndexFunc(p.variables, func(v variable) bool { return v.name == configsPath }); i >= 0 && p.name == arrangerName {
		p.loadCatalogues(p.variables[i].value)
	}
}

// spelling returns a name as all its spellings have it.
func spelling(name string) string {
	return strings.ToUpper(strings.NewReplacer(".", "", "[", "", "]", "", "-", "", "_", "").Replace(name))
}

// combined returns the variables that have a value, sorted by name; of several spellings of a name it returns the last.
func combined(lists ...[]variable) []variable {
	var all []variable
	for _, v := range slices.Concat(lists...) {
		v.name, v.value = strings.ToValidUTF8(v.name, "?"), strings.ToValidUTF8(strings.TrimSpace(v.value), "?")
		if i := slices.IndexFunc(all, func(other variable) bool { return spelling(other.name) == spelling(v.name) }); i >= 0 {
			all[i] = v
		} else {
			all = append(all, v)
		}
	}
	all = slices.DeleteFunc(all, func(v variable) bool { return v.value == "" })
	words := strings.NewReplacer(".", "_", "[", "_", "]", "")
	order.Sort(all, func(a, b variable) int { return setting.NaturalCompare(words.Replace(a.name), words.Replace(b.name)) })
	return all
}

// unreadable returns the error of a file or folder that cannot be read.
func unreadable(path string, err error) error {
	return core.NewError(core.CodeInvalid, path+" cannot be read: "+setting.Reason(err))
}

// invalid returns the error of a file's content.
func invalid(path, format string, args ...any) error {
	return core.NewError(core.CodeInvalid, path+": "+fmt.Sprintf(format, args...))
}

// isEnv reports whether a file of a folder holds variables.
func isEnv(name, product string) bool {
	return name == ".env" || strings.EqualFold(name, ".env."+product) || strings.HasSuffix(name, ".env")
}

// list returns the names in a folder, or the name of a file with its folder.
func list(path string) (folder string, names []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, unreadable(path, err)
	}
	if !info.IsDir() {
		return filepath.Dir(path), []string{filepath.Base(path)}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", nil, unreadable(path, err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return path, names, nil
}

// isSpring reports whether a file is one of Spring's, and for which profile, "" for all.
func isSpring(name string) (profile string, ok bool) {
	found := regexp.MustCompile(`^application(?:-(.+))?\.(?:ya?ml|properties)$`).FindStringSubmatch(name)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// profiles is the variable of Spring's active profiles.
const profiles = "SPRING_PROFILES_ACTIVE"

// loadSpring reads a file, or the files of a folder: Spring's, replaced by those of its active profiles, replaced by variables. The
// profiles may be in environ as well.
func (p *found) loadSpring(path string, environ []string) error {
	folder, names, err := list(path)
	if err != nil {
		return err
	}
	alone := len(names) == 1 && folder != path
	var documents []document
	var variables []variable
	read := 0
	for _, name := range names {
		file := filepath.Join(folder, name)
		profile, spring := isSpring(name)
		ext := filepath.Ext(name)
		switch {
		case spring, alone && (ext == ".yml" || ext == ".yaml" || ext == ".properties"):
			more, err := readSpring(file)
			if err != nil {
				return err
			}
			for i := range more {
				if more[i].profile == "" {
					more[i].profile = profile
				}
			}
			documents = append(documents, more...)
		case alone, isEnv(name, p.name):
			more, err := readEnv(file)
			if err != nil {
				return err
			}
			variables = append(variables, more...)
		default:
			continue
		}
		read++
	}
	if read == 0 {
		return &core.Error{Code: core.CodeInvalid, Message: path + " contains no configuration of " + p.name, Hint: "it may hold " + p.files}
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); name == profiles && len(documents) > 0 {
			variables = append([]variable{{name: name, value: value}}, variables...)
		}
	}
	p.variables = combined(p.active(documents, variables), variables)
	p.replacePlaceholders()
	return nil
}

// active returns the variables of the documents whose profile is active.
func (p *found) active(documents []document, variables []variable) []variable {
	var always, profiled []variable
	for _, d := range documents {
		if d.profile == "" {
			always = append(always, d.variables...)
		}
	}
	active := ""
	for _, v := range combined(always, variables) {
		if spelling(v.name) == spelling(profiles) {
			active = v.value
		}
	}
	var skipped []string
	for _, d := range documents {
		switch {
		case d.profile == "":
		case d.isActive(setting.SplitList(active)):
			profiled = append(profiled, d.variables...)
		default:
			skipped = append(skipped, d.profile)
		}
	}
	if active == "" && len(skipped) > 0 {
		p.warnings = append(p.warnings, sentence(fmt.Sprintf("%s: the parts for the profiles %s are not read: set %s to the active ones, in the "+
			"environment or in a .env file of the folder", p.source, strings.Join(skipped, ", "), profiles)))
	}
	return combined(always, profiled)
}

// placeholder matches a reference to another key of Spring: ${NAME} or ${NAME:default}.
var placeholder = regexp.MustCompile(`\$\{([^}:]+)(:[^}]*)?\}`)

// replacePlaceholders replaces references to other variables.
func (p *found) replacePlaceholders() {
	known := map[string]string{}
	for _, v := range p.variables {
		known[spelling(v.name)] = v.value
	}
	for i, v := range p.variables {
		p.variables[i].value = placeholder.ReplaceAllStringFunc(v.value, func(reference string) string {
			parts := placeholder.FindStringSubmatch(reference)
			if value, ok := known[spelling(parts[1])]; ok {
				return value
			}
			if parts[2] != "" {
				return parts[2][1:]
			}
			if k := p.row(v.name); k != nil && k.to != "" {
				p.warnings = append(p.warnings, sentence(fmt.Sprintf("%s: %s refers to %s, which is not set", p.source, v, reference)))
			}
			return reference
		})
	}
}
