package download

import (
	"encoding/json"
	"fmt"
	"strings"
)

// columnRequest is a requested column.
type columnRequest struct {
	at string
	// names are the possible names of its field, the most likely first.
	names []string
	// fieldName and accessor are its names in the first line and in the other lines of Arranger's JSON, "" for the field's name.
	fieldName, accessor string
	// hidden is set if Arranger's JSON omits it.
	hidden bool
	// header is its title, "" for the field's display name.
	header string
	// separator separates several values in one cell.
	separator string
	// display maps values to their display texts; nil for none.
	display map[string]string
	// dates is the date format in the syntax of date-fns, "" for dates as they are.
	dates string
}

const (
	separator = ", "
	// separatorOfLists is Arranger's default for columns that are configured as lists without a jsonPath.
	separatorOfLists = ";"
	// datesOfArranger is Arranger's default format for date columns.
	datesOfArranger = "yyyy-MM-dd"
)

// columns reads the columns of a file: names, or objects as in Arranger's configuration. Nil for none.
func (p *paramsParser) columns(o object) ([]columnRequest, error) {
	items, err := o.list("columns")
	if err != nil {
		return nil, err
	}
	if len(items) > p.maxColumns {
		return nil, invalid(o.at("columns"), fmt.Sprintf("has %d items, more than %d", len(items), p.maxColumns))
	}
	var all []columnRequest
	for i, raw := range items {
		at := item(o.at("columns"), i)
		if string(raw) == "null" { // clients of Arranger send null for a missing column
			continue
		}
		var name string
		if json.Unmarshal(raw, &name) == nil {
			all = append(all, columnRequest{at: at, names: []string{name}, separator: separator})
			continue
		}
		column, err := objectOf(raw, at)
		if err != nil {
			return nil, invalid(at, "is neither the name of a field nor an object with its fieldName")
		}
		wish := columnRequestOf(column, p.arranger)
		if len(wish.names) == 0 {
			return nil, invalid(at, "has no fieldName")
		}
		all = append(all, wish)
	}
	return all, nil
}

// columnRequestOf reads a column as in Arranger's configuration. jsonPath takes precedence over accessor and fieldName.
func columnRequestOf(o object, arranger bool) columnRequest {
	w := columnRequest{at: o.pointer, header: o.optionalText("displayName", "header", "Header"), separator: separator, dates: o.optionalText("displayFormat")}
	w.accessor, w.hidden = o.optionalText("accessor"), string(o.raw("show")) == "false"
	w.fieldName = o.optionalText("fieldName", "accessor")
	for _, member := range []string{"jsonPath", "accessor", "fieldName", "field", "id"} {
		if name := o.optionalText(member); name != "" {
			w.names = append(w.names, name)
		}
	}
	if string(o.raw("isArray")) == "true" && o.optionalText("jsonPath") == "" {
		w.separator = separatorOfLists
	}
	dated := o.optionalText("displayType") == "date" || o.optionalText("type") == "date"
	switch {
	case !dated:
		w.dates = ""
	case arranger && w.dates == "":
		w.dates = datesOfArranger
	}
	w.display = displayOf(o)
	return w
}

// displayOf reads the display texts of values.
func displayOf(o object) map[string]string {
	var values map[string]json.RawMessage
	if json.Unmarshal(o.raw("extendedDisplayValues"), &values) != nil || len(values) == 0 {
		return nil
	}
	display := make(map[string]string, len(values))
	for value, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		display[value] = text
	}
	return display
}

// plainName converts a path in GraphQL responses, or a JSONPath, to the dotted name of the field.
func plainName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "$"), ".")
	for _, part := range []string{".hits.edges[*].node", ".hits.edges[].node", ".hits.edges.node", "[*]", "[]"} {
		name = strings.ReplaceAll(name, part, "")
	}
	return name
}
