package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

// MappingNotes returns what the configuration says about the mapping of a repository without effect, or with another one than it says.
func MappingNotes(cfg config.Config, spec index.Spec) (unused, warnings []string) {
	file, err := mappingfile.Parse(spec.Mapping)
	if err != nil {
		return nil, nil
	}
	unused = file.Unused
	if cfg.Index.URL == "" {
		for name := range file.Settings {
			if !strings.HasPrefix(name, "index.mapping.") && !strings.HasPrefix(name, "index.analysis.") {
				unused = append(unused, "the setting "+name)
			}
		}
		for name := range file.Aliases {
			unused = append(unused, "the alias "+name)
		}
		slices.Sort(unused[len(file.Unused):])
	}
	if paths := file.Guessing(); len(paths) > 0 && spec.NewFields == "" {
		warnings = append(warnings, "dynamic of "+strings.Join(paths, ", ")+" would let the engine add fields by its own rules; tutti adds them by its rules, as with newFields: add")
	}
	if !file.Combines() {
		warnings = append(warnings, "the root of the mapping has no objects of its own (enabled or subobjects): tutti's own fields are not added")
	}
	return unused, warnings
}

// mappingFindings returns the findings on the mapping file of a repository. refused asks the engine: whether it tells, and why it refuses the
// mapping, nil if it does not. privilege is that which the user needs to ask it.
func mappingFindings(cfg config.Config, rc config.Repository, refused func(index.Spec) (told bool, err error), privilege string) []Finding {
	if rc.MappingFile == "" {
		return nil
	}
	subject := "mapping of " + rc.Code
	spec, err := settings.Spec(rc)
	if err != nil {
		return []Finding{{subject, StatusFail, core.MessageOf(err), core.HintOf(err)}}
	}
	var found []Finding
	switch told, err := refused(spec); {
	case err != nil:
		found = append(found, Finding{subject, StatusFail, core.MessageOf(err), core.HintOf(err)})
	case !told:
		found = append(found, Finding{
			subject, StatusWarn, "the search engine does not let this user try the mapping file: only the first creation of an index will tell whether it takes it",
			"grant the user's role the privilege " + privilege + " on the cluster",
		})
	default:
		found = append(found, Finding{subject, StatusOK, rc.MappingFile + " is accepted", ""})
	}
	unused, warnings := MappingNotes(cfg, spec)
	if len(unused) > 0 {
		found = append(found, Finding{subject, StatusWarn, rc.MappingFile + " has members that are not used: " + strings.Join(unused, ", "), ""})
	}
	for _, w := range warnings {
		found = append(found, Finding{subject, StatusWarn, w, "set newFields of the repository"})
	}
	return found
}

// embeddedRefusal returns why the embedded index refuses a mapping.
func embeddedRefusal(spec index.Spec) (told bool, err error) {
	_, err = embedded.Definition(spec)
	return true, err
}

// engineRefusal returns a function that asks the search engine whether it refuses a mapping.
func engineRefusal(ctx context.Context, cfg config.Index) func(spec index.Spec) (told bool, err error) {
	return func(spec index.Spec) (told bool, err error) {
		x, err := settings.OpenIndex(cfg)
		if err != nil {
			return false, nil
		}
		defer func() { _ = x.Close() }() // nothing was written
		found, err := x.Examine(ctx, spec)
		return err == nil && !found.Unasked, found.Refused
	}
}

// maxChanges is the number of changes of a rebuild that a message names.
const maxChanges = 5

// rebuildFindings returns what a rebuild would change in the index of a repository, none if it is nothing or is not known.
func rebuildFindings(ctx context.Context, cfg config.Index, rc config.Repository) []Finding {
	spec, err := settings.Spec(rc)
	if err != nil {
		return nil
	}
	x, err := settings.OpenIndex(cfg)
	if err != nil {
		return nil
	}
	defer func() { _ = x.Close() }() // nothing was written
	found, err := x.Compare(ctx, spec)
	if err != nil {
		return nil
	}
	var changes []string
	change := func(what, live, wanted string) {
		changes = append(changes, what+" ("+cmp.Or(live, "none")+" → "+cmp.Or(wanted, "none")+")")
	}
	for _, d := range found.Fields {
		if d.Change == mapping.ChangeRebuild {
			change(d.Field, d.Live, d.Wanted)
		}
	}
	for _, d := range slices.Concat(found.Settings, found.Limits) {
		change(d.Setting, d.Live, d.Wanted)
	}
	if len(changes) == 0 {
		return nil
	}
	text := "a rebuild would change " + strings.Join(changes[:min(len(changes), maxChanges)], ", ")
	if more := len(changes) - maxChanges; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []Finding{{"index of " + rc.Code, StatusOK, text + "; all is in: tutti mapping plan " + rc.Code, ""}}
}
