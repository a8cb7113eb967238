package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/base/isodate"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

// Definition returns the mapping with which the embedded index creates an alias of spec. CodeInvalid, with the path of the field, for what
// it cannot do as Elasticsearch does: it never takes a mapping and treats it in another way.
func Definition(spec index.Spec) (*mapping.Field, error) {
	file, err := mappingfile.Parse(spec.Mapping)
	if err != nil {
		return nil, err
	}
	tree, err := spec.Fields()
	if err != nil {
		return nil, refuse(core.MessageOf(err))
	}
	if !file.Given() {
		return tree, nil
	}
	for _, name := range []string{"index.mapping.ignore_malformed", "index.mapping.coerce"} {
		if _, set := file.Settings[name]; set {
			return nil, refuse("the setting " + name)
		}
	}
	if problem := rootProblem(tree); problem != "" {
		return nil, refuse(problem)
	}
	for path, f := range tree.All() {
		if raw, set := f.Params["format"]; set && string(raw) == strconv.Quote(mapping.DefaultFormat(f.Type)) {
			delete(f.Params, "format") // values are checked as without it; the tree is this call's own
		}
		if problem := fieldProblem(tree, f, file.Settings); problem != "" {
			return nil, refuse(fmt.Sprintf("the field %q: %s", path, problem))
		}
	}
	return tree, nil
}

func refuse(problem string) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "the embedded index refuses the mapping file: " + problem, Hint: "fix the mapping file, or set index.url to a search engine",
	}
}

// rootProblem returns the parameter of a mapping's root that the embedded index cannot do, "" for none.
func rootProblem(root *mapping.Field) string {
	for _, name := range slices.Sorted(maps.Keys(root.Params)) {
		value := string(root.Params[name])
		switch name {
		case "_meta", "date_detection", "numeric_detection", "dynamic_date_formats", "dynamic_templates", "enabled", "_field_names", "_size":
		case "subobjects":
			if value != "true" {
				return "subobjects is " + value
			}
		case "_source", "_routing":
			if value != "{}" && value != `{"enabled":true}` && value != `{"required":false}` {
				return "the parameter " + name
			}
		default:
			return "the parameter " + name
		}
	}
	return dynamicProblem(root)
}

func dynamicProblem(f *mapping.Field) string {
	switch f.Dynamic {
	case "", mapping.DynamicStrict, mapping.DynamicTrue, mapping.DynamicFalse, mapping.DynamicRuntime:
		return ""
	default:
		return "dynamic is " + strconv.Quote(f.Dynamic) + ", which is none of strict, true, false and runtime"
	}
}

// fieldProblem returns why the embedded index cannot do what a field says, "" if it can.
func fieldProblem(root, f *mapping.Field, settings map[string]any) string {
	if f.Container() {
		if problem := dynamicProblem(f); problem != "" {
			return problem
		}
	} else if !fieldtype.Of(f.Type).Has(fieldtype.Embedded) {
		return "there is no type " + strconv.Quote(string(f.Type))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Params)) {
		if problem := parameterProblem(root, f, name, settings); problem != "" {
			return problem
		}
	}
	return ""
}

// parameterProblem returns why the embedded index cannot do what a parameter of a field says, "" if it can.
func parameterProblem(root, f *mapping.Field, name string, settings map[string]any) string {
	text := strings.Trim(string(f.Params[name]), `"`)
	switch name {
	case "ignore_above", "ignore_malformed", "null_value", "copy_to", "index", "doc_values", "scaling_factor", "value", "depth_limit", "enabled", "meta",
		"split_queries_on_whitespace", "store", "norms", "eager_global_ordinals", "boost", "similarity", "term_vector", "index_options", "fielddata",
		"fielddata_frequency_filter", "position_increment_gap", "index_phrases", "index_prefixes", "include_in_parent", "include_in_root", "include_in_all",
		"time_series_dimension", "time_series_metric", "max_shingle_size", "ignore_z_value", "orientation", "relations", "dims", "dimension", "max_input_length",
		"preserve_separators", "preserve_position_increments", "contexts", "positive_score_impact", "metrics", "default_metric", "element_type", "locale":
		return ""
	case "coerce", "subobjects":
		if text != "true" {
			return name + " is " + text
		}
	case "path":
		if f.Type == "alias" && root.Lookup(text) == nil {
			return "it is an alias of the field " + strconv.Quote(text) + ", which the mapping does not have"
		}
	case "format":
		return formatProblem(f, text)
	case "normalizer":
		if text != "lowercase" || !onlyLowercase(settings) {
			return "the normalizer " + strconv.Quote(text) + "; known is lowercase, which is built in"
		}
	case "analyzer", "search_analyzer", "search_quote_analyzer":
		if text != "standard" && text != "default" {
			return "the " + strings.ReplaceAll(name, "_", " ") + " " + strconv.Quote(text) + "; known is standard"
		}
	default:
		return "the parameter " + name
	}
	return ""
}

// formatProblem returns why the embedded index cannot read the dates of a format, "" if it can.
func formatProblem(f *mapping.Field, text string) string {
	if f.Type == "date_range" {
		if text == fieldvalue.DayFormat {
			return ""
		}
		return "the date format " + strconv.Quote(text) + "; known is " + mapping.DefaultFormat(f.Type) + " or " + fieldvalue.DayFormat
	}
	format := f.DateFormat()
	if format == nil {
		return "the format " + strconv.Quote(text)
	}
	if part, unread := format.Unread(); unread {
		return "the date format " + strconv.Quote(part) + "; known are " + isodate.Known
	}
	return ""
}

// onlyLowercase reports whether the settings leave the normalizer lowercase what it is.
func onlyLowercase(settings map[string]any) bool {
	const prefix = "index.analysis.normalizer.lowercase."
	for name, value := range settings {
		setting, its := strings.CutPrefix(name, prefix)
		if !its || setting == "type" {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil || setting != "filter" || string(raw) != `["lowercase"]` && string(raw) != `"lowercase"` {
			return false
		}
	}
	return true
}
