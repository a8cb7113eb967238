package explore

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// MaxList is the number of values that a list may have, maxListed how many values of its field are read to say which were not found.
const (
	MaxList   = 1000
	maxListed = 10_000
)

// IDName is the name of the document's id as the field of a list.
const IDName = "_id"

// List is a list of values of one field, of which a document has any.
type List struct {
	Field  core.CatalogueField
	Values []string
	// Text is as it was pasted.
	Text string
}

// ListFields returns the fields that a list may be of: the document's id, and those whose values are compared as a whole.
func ListFields(fields []core.CatalogueField) []core.CatalogueField {
	list := []core.CatalogueField{{Name: IDName, DisplayName: "Document ID", Type: "keyword"}}
	for _, f := range fields {
		if isTerm(f) && fieldtype.Of(f.Type).Group == fieldtype.Exact && isName(f.Name) {
			list = append(list, f)
		}
	}
	return list
}

// ParseList reads a pasted list: values between white space, commas, semicolons or quotes, each once. It returns an empty List for none.
// CodeInvalid if there are more than MaxList, or the field is none of ListFields.
func ParseList(field, text string, fields []core.CatalogueField) (List, error) {
	l := List{Text: text}
	seen := map[string]bool{}
	for value := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;\"\u00a0", r) }) {
		if !seen[value] {
			seen[value] = true
			l.Values = append(l.Values, value)
		}
	}
	if len(l.Values) == 0 {
		return List{}, nil
	}
	if len(l.Values) > MaxList {
		return List{}, &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("the list has %d values, the limit is %d", len(l.Values), MaxList),
			Hint: "search for parts of it, or save a set by GraphQL and use set_id",
		}
	}
	for _, f := range ListFields(fields) {
		if f.Name == field {
			l.Field = f
			return l, nil
		}
	}
	return List{}, core.NewError(core.CodeInvalid, fmt.Sprintf("a list cannot be of the field %.60q", field))
}

func (l List) clause() clause {
	terms := make([]string, len(l.Values))
	for i, value := range l.Values {
		terms[i] = exact(value)
	}
	return clause{"in", fieldContent{l.Field.Name, terms}}
}

// Request returns the GraphQL query that finds which values of the list documents have, and its variable sqon.
func (l List) Request(document string) (text string, variables map[string]any, err error) {
	filter, err := encode(clause{"and", []any{l.clause()}})
	if err != nil {
		return "", nil, err
	}
	text = fmt.Sprintf("query($sqon:JSON){%s{hits(filters:$sqon,first:%d){edges{node{id}}}}}", document, MaxList)
	if l.Field.Name != IDName {
		text = fmt.Sprintf("query($sqon:JSON){%s{aggregations(filters:$sqon,aggregations_filter_themselves:true){%s{buckets(max:%d){key}}}}}",
			document, AggregationName(l.Field.Name), maxListed)
	}
	return text, map[string]any{"sqon": filter}, nil
}

// Missing returns the values of the list that no document has. known is false if these documents have too many other values to tell.
func (l List) Missing(document string, data gjson.Result) (missing []string, known bool) {
	found := data.Get(document + ".hits.edges.#.node.id").Array()
	if l.Field.Name != IDName {
		found = data.Get(document + ".aggregations." + gjsonKey(AggregationName(l.Field.Name)) + ".buckets.#.key").Array()
	}
	has := make(map[string]bool, len(found))
	for _, value := range found {
		has[value.String()] = true
	}
	for _, value := range l.Values {
		if !has[value] {
			missing = append(missing, value)
		}
	}
	return missing, len(missing) == 0 || len(found) < maxListed
}
