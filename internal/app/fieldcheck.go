package app

import (
	"bytes"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/jsontext"
	"tutti/internal/upstream"
)

// fieldCheck returns a function that reports why an index with only the initial mapping of a repository would reject the documents of
// an analysis: for more fields, more lists of objects or deeper fields than its limits allow. It returns "" for all others.
func fieldCheck(rc config.Repository) (func(a core.Analysis) string, error) {
	kind := rc.Kind()
	limits := mapping.LimitsOf(rc.Mapping)
	known, err := index.Spec{Mapping: rc.Mapping, Known: kind.Known()}.Fields()
	if err != nil {
		return nil, err
	}
	block, free := upstream.RepositoriesBlock(rc.Core()), limits
	for _, f := range known.All() {
		free.Fields--
		if f.Type == mapping.Nested {
			free.Nested--
		}
	}
	check := func(document []byte) string {
		if surelyFits(document, free) {
			return ""
		}
		grown, added, err := mapping.Grow(known, document)
		if err != nil || added == nil {
			return ""
		}
		return limits.Exceeded(grown)
	}
	return func(a core.Analysis) (fault string) {
		rec := core.Record{ID: a.ID, Organization: a.Study, State: string(a.State), Indexable: true, Body: a.Body}
		if kind.Split == nil {
			return check(kind.Append(nil, rec, block))
		}
		_ = kind.Split(rec, block, func(_ string, document []byte) error { // the consumers report what it rejects
			if fault == "" {
				fault = check(document)
			}
			return nil
		})
		return fault
	}, nil
}

// surelyFits reports whether simple upper bounds of the fields that a document adds are within free.
func surelyFits(document []byte, free mapping.Limits) bool {
	// Each name is followed by a colon, and has a field for each of its dots, escaped or not.
	fields, inName := bytes.Count(document, []byte(":")), 0
	for text := range bytes.SplitSeq(document, []byte(`"`)) {
		dots := bytes.Count(text, []byte(".")) + bytes.Count(text, []byte(`\`))
		fields += dots
		inName = max(inName, dots)
	}
	return fields <= free.Fields && bytes.Count(document, []byte("[")) <= free.Nested && !jsontext.TooDeep(document, free.Depth/(inName+1))
}
