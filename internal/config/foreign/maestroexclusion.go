package foreign

import (
	"slices"
	"strings"

	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/upstream/protocol"
)

// maestroExclusions returns the lists of exclude by the names of Maestro's rules. Maestro's documentation names file and sample, its code
// files and samples.
func maestroExclusions() map[string]string {
	return map[string]string{
		"STUDYID": "organizations", "ANALYSIS": "analyses", "FILE": "files", "FILES": "files", "DONOR": "donors", "SPECIMEN": "specimens",
		"SAMPLE": "samples", "SAMPLES": "samples",
	}
}

// MaestroExclusion returns the list of exclude that a variable of Maestro sets, "" for a rule that tutti does not know. It reports whether
// the variable is an exclusion rule at all. Maestro's documentation has the rules by id without the prefix MAESTRO_.
func MaestroExclusion(variable string) (list string, is bool) {
	rule, prefixed := strings.CutPrefix(springName(variable), maestroPrefix)
	if i := strings.LastIndexByte(rule, '_'); i >= 0 {
		if _, numbered := setting.IndexOf(rule[i+1:]); numbered {
			rule = rule[:i]
		}
	}
	rule, is = strings.CutPrefix(withoutUnderscores(rule), "EXCLUSIONRULES")
	kind, byID := strings.CutPrefix(rule, "BYID")
	if !is || !prefixed && !byID {
		return "", false
	}
	if byID {
		list = maestroExclusions()[kind]
	}
	return list, true
}

// Exclusions copies Maestro's exclusion rules, with any spelling of its variables and even when nothing else of Maestro is used, to
// each list of each repository that is not set, and returns warnings of those that are. A rule that tutti does not know is an
// error: without it more would be visible than before. An empty variable excludes nothing.
func Exclusions(root *setting.Node, environ []string, found *setting.ErrorList) []string {
	lists := maestroLists(environ, found)
	repositories := root.Member("repositories")
	if repositories == nil || repositories.Kind != setting.KindList {
		return nil
	}
	var warnings []string
	for i, r := range repositories.Items {
		for _, exclusion := range protocol.Of(core.RepositoryType(textOf(r.Member("type")))).Exclusions {
			if list := lists[exclusion.List]; list != nil && !fillList(r, list, exclusion.List) {
				warnings = append(warnings, strings.TrimPrefix(list.Source, "variable ")+" is ignored: "+
					setting.Indexed("repositories", i)+".exclude."+exclusion.List+" is set")
			}
		}
	}
	return warnings
}

// maestroLists returns the ids of Maestro's exclusion rules, each once, by the list of exclude that has them.
func maestroLists(environ []string, found *setting.ErrorList) map[string]*setting.Node {
	lists := make(map[string]*setting.Node)
	known := make(map[[2]string]bool)
	byName := func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return setting.NaturalCompare(a, b)
	}
	for _, entry := range slices.SortedFunc(slices.Values(environ), byName) {
		name, value, _ := strings.Cut(entry, "=")
		list, is := MaestroExclusion(name)
		switch {
		case !is || strings.TrimSpace(value) == "":
			continue
		case list == "":
			found.Add(name, "", "fix it, or unset it and set repositories[].exclude; the rules of Maestro are MAESTRO_EXCLUSIONRULES_BYID_ with "+
				"STUDYID, ANALYSIS, FILE, SAMPLE, SPECIMEN or DONOR", "is not an exclusion rule that tutti knows; records that Maestro excludes would be indexed")
			continue
		case lists[list] == nil:
			lists[list] = &setting.Node{Kind: setting.KindList, Source: "variable " + name}
		}
		for _, id := range setting.SplitList(value) {
			if !known[[2]string{list, id}] {
				known[[2]string{list, id}] = true
				lists[list].Items = append(lists[list].Items, &setting.Node{Kind: setting.KindScalar, Text: id, Source: "variable " + name})
			}
		}
	}
	return lists
}

// fillList sets a list of a repository's exclude, unless it is set already. It reports whether it did.
func fillList(repository, list *setting.Node, name string) bool {
	if repository.Kind != setting.KindObject {
		return true // an error of its own
	}
	exclude := repository.Member("exclude")
	if exclude == nil {
		exclude = setting.NewObject(list.Source)
		repository.Set("exclude", exclude)
	}
	if exclude.Kind != setting.KindObject || exclude.Member(name) != nil {
		return false
	}
	exclude.Set(name, list)
	return true
}
