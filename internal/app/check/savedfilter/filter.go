// Package savedfilter reads filters and requests that were saved for Arranger, and says which of them mean something else in tutti.
//
// It imports internal/core, internal/filter and, for its findings, internal/app/check only.
package savedfilter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/app/check"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
)

// Check reads saved filters and reports those whose meaning changes when they move from Arranger to tutti: StatusFail for a filter that is
// refused or finds other documents, StatusWarn for one that may, by the type of a field or by the documents. raw has filters or lists of
// filters, one after the other: a filter, an array of filters, or a filter per line; instead of a filter, a saved request of GraphQL
// ({"query": …, "variables": …}) with its filters. fields are those of the catalogue that the filters are for, by whose types clauses are judged;
// nil if they are not known.
func Check(raw []byte, fields []core.CatalogueField) check.Report {
	var found []check.Finding
	var types sqon.Fields
	if fields != nil {
		types = typesOfFields(fields)
	}
	read := 0
	err := eachFilter(raw, func(line int, filter json.RawMessage) {
		read++
		m := &moved{fields: types, subject: fmt.Sprintf("filter %d, line %d", read, line)}
		if query := gjson.GetBytes(filter, "query"); query.Type == gjson.String {
			m.request(query.Str, gjson.GetBytes(filter, "variables"))
		} else {
			m.filter("", filter)
		}
		found = append(found, m.found...)
	})
	file := check.Finding{Subject: "filters", Status: check.StatusFail, Hint: "pass one filter, an array of filters, or one filter per line"}
	switch {
	case err != nil:
		file.Message = fmt.Sprintf("after %s the file is not JSON: %s", number(read), err)
	case read == 0:
		file.Message = "the file has no filter"
	case len(found) == 0:
		file.Status, file.Hint, file.Message = check.StatusOK, "", number(read)+", with the same meaning in tutti"
	default:
		return check.NewReport(found)
	}
	return check.NewReport(append(found, file))
}

func number(filters int) string {
	if filters == 1 {
		return "1 filter"
	}
	return fmt.Sprintf("%d filters", filters)
}

// eachFilter calls each with all filters and the lines on which they begin.
func eachFilter(raw []byte, each func(line int, filter json.RawMessage)) error {
	in := json.NewDecoder(bytes.NewReader(raw))
	one := func() error {
		var filter json.RawMessage
		if err := in.Decode(&filter); err != nil {
			return err
		}
		each(1+bytes.Count(raw[:int(in.InputOffset())-len(filter)], []byte("\n")), filter)
		return nil
	}
	for {
		rest := bytes.TrimSpace(raw[in.InputOffset():])
		if len(rest) == 0 {
			return nil
		}
		if rest[0] != '[' {
			if err := one(); err != nil {
				return err
			}
			continue
		}
		if _, err := in.Token(); err != nil {
			return err
		}
		for in.More() {
			if err := one(); err != nil {
				return err
			}
		}
		if _, err := in.Token(); err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// fieldTypes are the fields of a catalogue by their names.
type fieldTypes map[string]sqon.Field

// typesOfFields returns the fields of a catalogue as filters know them.
func typesOfFields(fields []core.CatalogueField) fieldTypes {
	types := fieldTypes{"_id": {Type: "keyword"}}
	for _, f := range fields {
		types[f.Name] = sqon.Field{Type: f.Type}
	}
	for name, f := range types {
		for at := range len(name) + 1 {
			if at == len(name) || name[at] == '.' {
				if path := name[:at]; types[path].Type == "nested" {
					f.Nested = append(f.Nested, path)
				}
			}
		}
		types[name] = f
	}
	return types
}

// Field implements sqon.Fields.
func (t fieldTypes) Field(name string) (sqon.Field, bool) {
	f, known := t[name]
	return f, known
}

// Names implements sqon.Names.
func (t fieldTypes) Names() iter.Seq[string] { return maps.Keys(t) }

// moved collects what changes of one filter or request.
type moved struct {
	// fields are nil if they are not known.
	fields  sqon.Fields
	subject string
	found   []check.Finding
}

// add adds a finding on the part of the input at a pointer. status is "" for no finding.
func (m *moved) add(pointer string, status check.Status, message, hint string) {
	if status == "" {
		return
	}
	if pointer != "" {
		message = pointer + ": " + message
	}
	m.found = append(m.found, check.Finding{Subject: m.subject, Status: status, Message: message, Hint: hint})
}

// filter adds what changes of a filter, which is at a pointer of the input.
func (m *moved) filter(pointer string, raw json.RawMessage) {
	filter, err := sqon.ParseLenient(raw)
	if err == nil && m.fields != nil {
		err = filter.Check(m.fields)
	}
	if refused, is := errors.AsType[*core.Error](err); is {
		for _, v := range refused.Violations {
			m.add(pointer+v.Pointer, check.StatusFail, "tutti refuses it: "+v.Message, refusedHint(v))
		}
	}
	if filter.Root != nil { // every error of the parser has violations
		m.node(pointer, filter.Root, "", true)
	}
}

func refusedHint(v core.Violation) string {
	if strings.Contains(v.Message, "takes exactly one value") {
		return "Arranger uses the largest value for gt and gte, the smallest for lt and lte: keep that one"
	}
	return ""
}

// node adds what changes of a clause or group, which is below a pivot, "" for none. top is set if facets leave the clause out.
func (m *moved) node(above string, n *sqon.Node, pivot string, top bool) {
	pointer := above + n.Pointer
	if n.Pivot != "" {
		pivot = n.Pivot
	}
	if n.Group() {
		if n.Op == sqon.Not && pivot != "" {
			m.add(pointer, check.StatusWarn, "not below the pivot "+pivot+" is about the element that the pivot selects, not about all elements", "")
		}
		for _, member := range n.Content {
			m.node(above, member, pivot, top && (n.Op == sqon.And || n.Op == sqon.Not && len(n.Content) == 1 && !member.Group()))
		}
		return
	}
	m.operator(pointer, n)
	m.values(pointer, n, pivot)
	if !top && m.any(n, check.StatusWarn, func(f sqon.Field) bool { return fieldtype.Of(f.Type).Countable() }) != "" {
		m.add(pointer, check.StatusWarn, "the facet of "+strings.Join(n.Fields, ", ")+" counts only documents that the filter finds, because the clause is inside an or, or with others inside a not; Arranger leaves the clause out of it", "")
	}
}

// any returns whether something is so of a field of a clause: StatusFail if it is, "" if not, and otherwise where fields are not known.
func (m *moved) any(n *sqon.Node, otherwise check.Status, is func(sqon.Field) bool) check.Status {
	if m.fields == nil {
		return otherwise
	}
	for _, name := range n.Fields {
		if f, known := m.fields.Field(name); known && is(f) {
			return check.StatusFail
		}
	}
	return ""
}

// nested is any of nested fields.
func (m *moved) nested(n *sqon.Node) check.Status {
	var otherwise check.Status
	if strings.Contains(strings.Join(n.Fields, ""), ".") {
		otherwise = check.StatusWarn
	}
	return m.any(n, otherwise, func(f sqon.Field) bool { return len(f.Nested) > 0 })
}

func isDate(f sqon.Field) bool { return fieldtype.Of(fieldtype.End(f.Type)).Date() }

// operator adds a change of the meaning of a clause's operator.
func (m *moved) operator(pointer string, n *sqon.Node) {
	field := strings.Join(n.Fields, ", ")
	switch n.Op {
	case sqon.Wildcard:
		if slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return !strings.ContainsAny(v.Text, "*?") }) {
			m.add(pointer, check.StatusFail, "filter on "+field+" without * or ? finds values that contain the text; Arranger finds those that equal it, in any case", "for values that equal the text use in, which distinguishes upper and lower case")
		}
	case sqon.NotIn, sqon.SomeNotIn:
		m.add(pointer, m.nested(n), string(n.Op)+" on "+field+" does what its name says; if the field is nested, Arranger does what the other name says",
			"for the same documents use "+string(otherNegation(n.Op)))
	case sqon.Gt, sqon.Gte, sqon.Lt, sqon.Lte, sqon.Between:
		if text := partialDate(n.Values); text != "" && endMatters(n) {
			m.add(pointer, m.any(n, check.StatusFail, isDate), string(n.Op)+" on "+field+": the end of "+text+" is the end of the whole period; with Arranger the engine ends it after its first day",
				"write the day: a date such as 2024-03-01")
		}
	default:
	}
}

// values adds a change of the meaning of the values of a clause that compares whole values and is below a pivot, "" for none.
func (m *moved) values(pointer string, n *sqon.Node, pivot string) {
	field := strings.Join(n.Fields, ", ")
	if n.Op != sqon.In && n.Op != sqon.NotIn && n.Op != sqon.SomeNotIn && n.Op != sqon.All {
		return
	}
	if text := partialDate(n.Values); text != "" {
		m.add(pointer, m.any(n, check.StatusWarn, isDate), string(n.Op)+" on "+field+": if the field is a date, "+text+" is the whole period; with Arranger it is its first day", "")
	}
	missing := slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return v.Term().Kind == sqon.TermMissing })
	if missing && (pivot == "" || !strings.HasPrefix(field, pivot+".")) {
		m.add(pointer, m.nested(n), "__missing__ on "+field+": if the field is nested, it means that no element has a value, also of documents without elements; in Arranger, that some element has none",
			"for Arranger's meaning put the clause below a pivot on the nested path")
	}
}

// otherNegation returns the other one of not-in and some-not-in.
func otherNegation(op sqon.Operator) sqon.Operator {
	if op == sqon.NotIn {
		return sqon.SomeNotIn
	}
	return sqon.NotIn
}

// endMatters reports whether a clause of a range depends on the end of a partial date.
func endMatters(n *sqon.Node) bool {
	if n.Op == sqon.Between { // of its lower bound only the beginning counts; which that is, depends on the values
		return true
	}
	return n.Op == sqon.Gt || n.Op == sqon.Lte
}

// partialDate returns the first value that is a date longer than a day, "" for none.
func partialDate(values []sqon.Value) string {
	for _, v := range values {
		if v.Kind != sqon.String {
			continue
		}
		if from, to, err := v.Date(); err == nil && to.Sub(from) > 24*time.Hour {
			return v.Text
		}
	}
	return ""
}
