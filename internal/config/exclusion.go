package config

import (
	"slices"
	"strings"

	"tutti/internal/base/setting"
	"tutti/internal/upstream"
	"tutti/internal/upstream/protocol"
)

// exclusionKey returns the key of the lists of all types.
func (r *Repository) exclusionKey() setting.Key {
	if r.Exclude == nil {
		r.Exclude = make(map[string]*[]string)
	}
	var keys []setting.Key
	for _, list := range allExclusions() {
		if r.Exclude[list.List] == nil {
			r.Exclude[list.List] = new([]string)
		}
		keys = append(keys, setting.List(list.List, r.Exclude[list.List], nil, list.Doc))
	}
	return setting.Object("exclude", "Records that are not indexed: the next run removes their documents.", keys...)
}

// allExclusions returns the lists of all types, each once.
func allExclusions() []upstream.Exclusion {
	var all []upstream.Exclusion
	for _, t := range protocol.Types() {
		for _, list := range t.Exclusions {
			if !slices.ContainsFunc(all, func(other upstream.Exclusion) bool { return other.List == list.List }) {
				all = append(all, list)
			}
		}
	}
	return all
}

// Exclusions returns the ids of the lists that are not empty.
func (r Repository) Exclusions() map[string][]string {
	ids := make(map[string][]string)
	for list, of := range r.Exclude {
		if len(*of) > 0 {
			ids[list] = *of
		}
	}
	return ids
}

// validateExclusions reports lists that the type does not have, and ids that are in a list twice. Empty ones were reported before.
func (r Repository) validateExclusions(at string, given *setting.Node, f *setting.ErrorList) {
	var own []string
	for _, list := range protocol.Of(r.Type).Exclusions {
		own = append(own, list.List)
	}
	for _, list := range allExclusions() {
		path, ids := at+"."+list.List, *r.Exclude[list.List]
		if r.Type != "" && len(ids) > 0 && !slices.Contains(own, list.List) {
			f.Add(path, sourceOf(given, list.List), "use "+strings.Join(own, ", "), "does not apply to type %s", r.Type)
			continue
		}
		first := make(map[string]int, len(ids))
		for i, id := range ids {
			before, twice := first[id]
			switch {
			case id == "":
			case twice:
				f.Add(setting.Indexed(path, i), sourceOf(given, list.List), "remove one of them", "%q is also %s", id, setting.Indexed(path, before))
			case strings.TrimSpace(id) != id:
				f.Add(setting.Indexed(path, i), sourceOf(given, list.List), "", "%q starts or ends with white space", id)
			default:
				first[id] = i
			}
		}
	}
}
