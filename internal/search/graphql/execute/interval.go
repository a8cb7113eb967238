package execute

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/order"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
)

// interval is a bucket of a histogram or a range: an interval of values and its number of documents.
type interval struct {
	key, text string
	count     int64
}

// histogram plans a histogram, or null with an error if it has too many intervals, which search reports as a result with
// values but without intervals.
func (a *aggregationPlanner) histogram(one *facet, f *ast.Field) (Value, *output.Error) {
	args := a.Arguments(f)
	width := args.Number("interval", defaultInterval)
	switch {
	case !(width > 0) || math.IsInf(width, 0):
		args.Reject("interval", "must be greater than 0")
	case width < index.MinInterval:
		args.Reject("interval", "is too small: the smallest is "+jsontext.Number(index.MinInterval))
	}
	if bad := args.Err(); bad != nil {
		return nil, bad
	}
	at := one.findOrAdd(
		func(f *index.Facet) bool { return f.Histogram == 0 || f.Histogram == width },
		func(f *index.Facet) { f.Histogram = width },
	)
	field, date := one.field, fieldtype.Of(one.field.Type).Date()
	members := a.intervals(f, func(w *Writer) []interval {
		found := w.facet(at).Histogram
		out := make([]interval, len(found))
		for i, h := range found {
			out[i] = interval{key: jsontext.Number(h.Key + 0), count: h.Count}
			if date {
				out[i].text = dateText(h.Key)
			}
		}
		return out
	})
	return func(w *Writer) {
		if r := w.facet(at); len(r.Histogram) == 0 && r.Stats.Count > 0 {
			asked := index.Facet{Field: field, Histogram: width}
			w.NullWithError(output.ErrorOf(asked.TooManyIntervals()).At(f.Position))
			return
		}
		w.object(members)
	}, nil
}

// namedRange is a range with the key of its bucket.
type namedRange struct {
	index.NumberRange
	name string
}

// ranges plans the numbers of documents in ranges.
func (a *aggregationPlanner) ranges(one *facet, f *ast.Field) (Value, *output.Error) {
	args := a.Arguments(f)
	date := fieldtype.Of(one.field.Type).Date()
	var wanted []namedRange
	for _, item := range args.List("ranges") {
		if item.Type != gjson.Null {
			wanted = append(wanted, rangeOf(item, date))
		}
	}
	if len(wanted) == 0 {
		zero := 0.0
		wanted = []namedRange{{NumberRange: index.NumberRange{From: &zero}, name: rangeName(&zero, nil, date)}}
	}
	if len(wanted) > maxRanges {
		args.Reject("ranges", "has more than 1000 ranges")
		return nil, args.Err()
	}
	order.Stable(wanted, byBounds)
	asked := make([]index.NumberRange, len(wanted))
	for i, r := range wanted {
		asked[i] = r.NumberRange
	}
	at := one.findOrAdd(
		func(f *index.Facet) bool { return f.Ranges == nil || slices.EqualFunc(f.Ranges, asked, equalRange) },
		func(f *index.Facet) { f.Ranges = asked },
	)
	return object(a.intervals(f, func(w *Writer) []interval {
		counts := w.facet(at).Ranges
		out := make([]interval, min(len(wanted), len(counts)))
		for i := range out {
			out[i] = interval{key: wanted[i].name, count: counts[i]}
		}
		return out
	})), nil
}

// rangeOf reads a range of the argument ranges.
func rangeOf(item gjson.Result, date bool) namedRange {
	bound := func(name string) *float64 {
		v := item.Get(name)
		if v.Type != gjson.Number {
			return nil
		}
		return &v.Num
	}
	from, to := bound("from"), bound("to")
	return namedRange{index.NumberRange{From: from, To: to}, cmp.Or(item.Get("key").String(), rangeName(from, to, date))}
}

// rangeName returns the engine's default key of a range.
func rangeName(from, to *float64, date bool) string {
	bound := func(f *float64) string {
		switch {
		case f == nil:
			return "*"
		case date:
			return dateText(*f)
		}
		return javaNumber(*f)
	}
	return bound(from) + "-" + bound(to)
}

// javaNumber formats a number as Java does: with a digit after the point at least, and below 1e-3 and from 1e7 on with an exponent (1.0E7).
func javaNumber(v float64) string {
	size := math.Abs(v)
	if size == 0 || size >= 1e-3 && size < 1e7 {
		return withPoint(strconv.FormatFloat(v, 'f', -1, 64))
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	power, _ := strconv.Atoi(exponent)
	return withPoint(digits) + "E" + strconv.Itoa(power)
}

func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}

// byBounds orders ranges as the engine returns them.
func byBounds(a, b namedRange) int {
	bound := func(f *float64, open float64) float64 {
		if f == nil {
			return open
		}
		return *f
	}
	return cmp.Or(cmp.Compare(bound(a.From, -1e308), bound(b.From, -1e308)), cmp.Compare(bound(a.To, 1e308), bound(b.To, 1e308)))
}

func equalRange(a, b index.NumberRange) bool {
	same := func(a, b *float64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return same(a.From, b.From) && same(a.To, b.To)
}

// intervals plans the buckets of a histogram or of ranges, and their number.
func (a *aggregationPlanner) intervals(f *ast.Field, all func(w *Writer) []interval) []member {
	return a.members(a.Below(f), func(f *ast.Field) (Value, *output.Error) {
		switch f.Name {
		case "bucket_count":
			return func(w *Writer) { w.Int(int64(len(all(w)))) }, nil
		case "buckets":
			fields := a.Below(f)
			for _, part := range fields {
				if part.Name == "top_hits" || part.Name == "filter_by_term" {
					return nil, output.InputError(fmt.Sprintf(
						"buckets of histogram and range have only document counts: %s is not available", part.Name,
					)).At(part.Position)
				}
			}
			return func(w *Writer) {
				found := all(w)
				w.List(len(found), func(i int) { w.interval(fields, &found[i]) })
			}, nil
		default:
			return Null, nil
		}
	})
}

func (w *Writer) interval(fields []*ast.Field, one *interval) {
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
}

// dateText formats milliseconds since 1970 in the engine's default date format.
func dateText(millis float64) string {
	return time.UnixMilli(int64(millis)).UTC().Format(output.TimeLayout)
}
