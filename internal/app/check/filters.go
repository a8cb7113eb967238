package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// Filters reads saved filters and reports those whose meaning changes when they move from Arranger to tutti: StatusFail for a filter that is
// refused or finds other documents, StatusWarn for one that may, by the type of a field or by the documents. raw has filters or lists of
// filters, one after the other: a filter, an array of filters, or a filter per line.
func Filters(raw []byte) Report {
	var found []Finding
	read := 0
	err := eachFilter(raw, func(line int, filter json.RawMessage) {
		read++
		for _, f := range moved(filter) {
			f.Subject = fmt.Sprintf("filter %d, line %d", read, line)
			found = append(found, f)
		}
	})
	switch {
	case err != nil:
		found = append(found, Finding{"filters", StatusFail, fmt.Sprintf("after %s the file is not JSON: %s", count(read, "filter", "filters"), err), "pass one filter, an array of filters, or one filter per line"})
	case read == 0:
		found = append(found, Finding{"filters", StatusFail, "the file has no filter", "pass one filter, an array of filters, or one filter per line"})
	case len(found) == 0:
		found = append(found, Finding{"filters", StatusOK, fmt.Sprintf("%s, with the same meaning in tutti", count(read, "filter", "filters")), ""})
	}
	return newReport(found)
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

// moved returns what changes of one filter, without subjects.
func moved(raw json.RawMessage) (found []Finding) {
	filter, err := sqon.ParseLenient(raw)
	if err != nil {
		if refused, is := errors.AsType[*core.Error](err); is {
			for _, v := range refused.Violations {
				found = append(found, Finding{"", StatusFail, at(v.Pointer) + "tutti refuses it: " + v.Message, refusedHint(v)})
			}
		}
		return found // every error of the parser has violations
	}
	if filter.Root != nil {
		walkMoved(filter.Root, "", func(n *sqon.Node, status Status, reason, hint string) {
			found = append(found, Finding{"", status, at(n.Pointer) + reason, hint})
		})
	}
	return found
}

func at(pointer string) string {
	if pointer == "" {
		return ""
	}
	return pointer + ": "
}

func refusedHint(v core.Violation) string {
	if strings.Contains(v.Message, "takes exactly one value") {
		return "Arranger uses the largest value for gt and gte, the smallest for lt and lte: keep that one"
	}
	return ""
}

// walkMoved calls note for each clause and group below n, which is below pivot, whose meaning changes.
func walkMoved(n *sqon.Node, pivot string, note func(n *sqon.Node, status Status, reason, hint string)) {
	if n.Pivot != "" {
		pivot = n.Pivot
	}
	if n.Group() {
		if n.Op == sqon.Not && pivot != "" {
			note(n, StatusWarn, "not below the pivot "+pivot+" is about the element that the pivot selects, not about all elements", "")
		}
		for _, member := range n.Content {
			walkMoved(member, pivot, note)
		}
		return
	}
	movedClause(n, note)
	movedValues(n, note)
}

// movedClause calls note if the meaning of the operator of a clause changes.
func movedClause(n *sqon.Node, note func(n *sqon.Node, status Status, reason, hint string)) {
	field := strings.Join(n.Fields, ", ")
	switch n.Op {
	case sqon.Wildcard:
		if slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return !strings.ContainsAny(v.Text, "*?") }) {
			note(n, StatusFail, "filter on "+field+" without * or ? finds values that contain the text; Arranger finds those that begin with it", "end the value with *")
		}
	case sqon.NotIn, sqon.SomeNotIn:
		if strings.Contains(field, ".") {
			note(n, StatusWarn, string(n.Op)+" on "+field+" does what its name says; if the field is nested, Arranger does what the other name says",
				"for the same documents use "+string(otherNegation(n.Op)))
		}
	case sqon.Gt, sqon.Gte, sqon.Lt, sqon.Lte, sqon.Between:
		if text := partialDate(n.Values); text != "" && endMatters(n) {
			note(n, StatusFail, string(n.Op)+" on "+field+": the end of "+text+" is the end of the whole period; with Arranger the engine ends it after its first day",
				"write the day: a date such as 2024-03-01")
		}
	default:
	}
}

// movedValues calls note for the values of a clause that compares whole values and whose meaning changes.
func movedValues(n *sqon.Node, note func(n *sqon.Node, status Status, reason, hint string)) {
	field := strings.Join(n.Fields, ", ")
	if n.Op == sqon.In || n.Op == sqon.NotIn || n.Op == sqon.SomeNotIn || n.Op == sqon.All {
		if text := partialDate(n.Values); text != "" {
			note(n, StatusWarn, string(n.Op)+" on "+field+": if the field is a date, "+text+" is the whole period; with Arranger it is its first day", "")
		}
		if strings.Contains(field, ".") && slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return v.Kind == sqon.String && v.Text == "__missing__" }) {
			note(n, StatusWarn, "__missing__ on "+field+": if the field is nested, it means that no element has a value, or below a pivot that the element has none",
				"compare the number of documents")
		}
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
