package response

import (
	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
)

// Interval is a bucket of a histogram or a range: an interval of values and its number of documents.
type Interval struct {
	key, text string
	count     int64
}

// Intervals are the intervals of a facet's result.
type Intervals func(w *Writer) []Interval

// HistogramIntervals returns the intervals of a histogram of numbers or dates.
func (f Facet) HistogramIntervals(date bool) Intervals {
	return func(w *Writer) []Interval {
		found := w.facet(f).Histogram
		out := make([]Interval, len(found))
		for i, h := range found {
			out[i] = Interval{key: output.PlainNumber(h.Key), count: h.Count}
			if date {
				out[i].text = dateText(h.Key)
			}
		}
		return out
	}
}

// RangeIntervals returns the intervals of ranges.
func (f Facet) RangeIntervals(ranges []Range) Intervals {
	return func(w *Writer) []Interval {
		counts := w.facet(f).Ranges
		out := make([]Interval, 0, len(ranges))
		for i, r := range ranges {
			if i < len(counts) {
				out = append(out, Interval{key: r.Name, count: counts[i]})
			}
		}
		return out
	}
}

// Count writes the number of intervals.
func (all Intervals) Count(w *Writer) bool { return w.Int(int64(len(all(w)))) }

// List returns the Value of the buckets of a field with the given fields.
func (all Intervals) List(f *ast.Field, fields []*ast.Field) Value {
	return func(w *Writer) bool {
		intervals := all(w)
		return w.List(len(intervals), output.ItemRequired(f), func(i int) bool { return w.interval(fields, &intervals[i]) })
	}
}

func (w *Writer) interval(fields []*ast.Field, one *Interval) bool {
	w.Buf = append(w.Buf, '{')
	for i, f := range fields {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(jsontext.AppendString(w.Buf, f.Alias), ':')
		switch {
		case f.Name == "key":
			w.Text(one.key)
		case f.Name == "doc_count":
			w.Int(one.count)
		case f.Name == "key_as_string" && one.text != "":
			w.Text(one.text)
		case f.Name == "__typename":
			w.Text(f.ObjectDefinition.Name)
		default:
			w.Null()
		}
	}
	w.Buf = append(w.Buf, '}')
	return true
}

// Range is a range with the key of its bucket.
type Range struct {
	index.NumberRange
	Name string
}

// RangeOf reads a range of the argument ranges.
func RangeOf(item gjson.Result, date bool) Range {
	bound := func(name string) *float64 {
		v := item.Get(name)
		if v.Type != gjson.Number {
			return nil
		}
		return &v.Num
	}
	r := Range{NumberRange: index.NumberRange{From: bound("from"), To: bound("to")}, Name: item.Get("key").String()}
	if r.Name == "" {
		r.Name = RangeName(r.From, r.To, date)
	}
	return r
}

// RangeName returns the engine's default key of a range.
func RangeName(from, to *float64, date bool) string {
	bound := func(f *float64) string {
		switch {
		case f == nil:
			return "*"
		case date:
			return dateText(*f)
		}
		text := output.PlainNumber(*f)
		if *f == float64(int64(*f)) {
			text += ".0"
		}
		return text
	}
	return bound(from) + "-" + bound(to)
}
