package download

import (
	"encoding/json"
	"fmt"
	"strings"
)

// columnRequest is a column that was asked for.
type columnRequest struct {
	at string
	// names are what its field may be called, the likeliest first.
	names []string
	// fieldName and accessor are what Arranger's JSON calls it in its first line and in the others, "" for the name of its field.
	fieldName, accessor string
	// hidden is set where Arranger's JSON leaves it out.
	hidden bool
	// header is what it is called, "" for the field's own display name.
	header string
	// separator stands between several values in one cell.
	separator string
	// display says how values are shown, by their texts; nil for as they are.
	display map[string]string
	// dates is the format of dates as date-fns has it, "" for as they are.
	dates string
}

const (
	separator = ", "
	// separatorOfLists is Arranger's for columns that are configured as lists and do not say where their values are.
	separatorOfLists = ";"
	// datesOfArranger is Arranger's where the column of a date does not say another.
	datesOfArranger = "yyyy-MM-dd"
)

// columns reads the columns of a file: names, or objects as Arranger's configuration has them. Nil when there are none.
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
		if string(raw) == "null" { // what a client of Arranger has no column for
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

// columnRequestOf reads a column as Arranger's configuration has it. Where its values are, jsonPath says before accessor and fieldName.
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

// displayOf reads how values are shown.
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

// plainName returns the dotted name of what leads to a field in the answers of GraphQL, or in those of JSONPath.
func plainName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "$"), ".")
	for _, part := range []string{".hits.edges[*].node", ".hits.edges[].node", ".hits.edges.node", "[*]", "[]"} {
		name = strings.ReplaceAll(name, part, "")
	}
	return name
}
