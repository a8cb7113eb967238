package results

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Figure is one measured quantity. Ratio returns one that compares two arms.
type Figure struct {
	// Name describes the figure, with its unit; it is unique in its report.
	Name string
	// Values are the values of the runs, in order.
	Values []float64
	// Target is the target of the median of Values, nil for none.
	Target *Target
	// Arms are what a ratio compares, nil for other figures.
	Arms *Arms
}

// Arms are the measurements of a ratio. Their runs alternate: base, other, base, other, …, base.
type Arms struct {
	Base  []float64 `json:"base"`
	Other []float64 `json:"other"`
	// Again is the A/A arm: the base relative to the base before it, with nothing but the machine's noise between them.
	Again []float64 `json:"again"`
}

// Target is a bound of a figure.
type Target struct {
	Limit float64 `json:"limit"`
	// AtLeast: the target is Limit or more, otherwise Limit or less.
	AtLeast bool `json:"atLeast"`
}

// AtLeast returns a target of limit or more.
func AtLeast(limit float64) *Target { return &Target{Limit: limit, AtLeast: true} }

// AtMost returns a target of limit or less.
func AtMost(limit float64) *Target { return &Target{Limit: limit} }

func (t Target) meets(x float64) bool { return x == t.Limit || (x > t.Limit) == t.AtLeast }

// Alternate runs base and other in turn, rounds times each, and base once more at the end, so that each run of other lies between two
// of base and no base is run twice for the A/A arm.
func Alternate[T any](rounds int, base, other func() (T, error)) (bases, others []T, err error) {
	for i := range 2*rounds + 1 {
		run, runs := base, &bases
		if i%2 == 1 {
			run, runs = other, &others
		}
		one, err := run()
		if err != nil {
			return nil, nil, err
		}
		*runs = append(*runs, one)
	}
	return bases, others, nil
}

// Ratio returns the figure of other relative to base, the runs of Alternate: each of other is divided by the mean of the two bases
// around it. Where one of these is missing or 0 there is no value.
func Ratio(name string, target *Target, base, other []float64) Figure {
	f := Figure{Name: name, Target: target, Arms: &Arms{Base: base, Other: other}}
	for i := range base {
		if i > 0 && base[i-1] > 0 && base[i] > 0 {
			f.Arms.Again = append(f.Arms.Again, base[i]/base[i-1])
		}
		if around := mean(base[i:min(i+2, len(base))]); i < len(other) && around > 0 {
			f.Values = append(f.Values, other[i]/around)
		}
	}
	return f
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Select returns one number of each run.
func Select[T any](runs []T, of func(T) float64) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	return values
}

// Min is the smallest of the values; this and the following functions return 0 when there are none.
func (f Figure) Min() float64 { return Quantile(f.Values, 0) }

// Median is the middle value, or the mean of the two middle values.
func (f Figure) Median() float64 {
	return (Quantile(f.Values, 0.5) + QuantileUp(f.Values, 0.5)) / 2
}

// Max is the largest of the values.
func (f Figure) Max() float64 { return Quantile(f.Values, 1) }

// Spread is the largest distance of the A/A arm from 1: 0.05 when one base was 1.05 times the other. It is 0 without an A/A arm.
func (f Figure) Spread() float64 {
	if f.Arms == nil {
		return 0
	}
	spread := 0.0
	for _, again := range f.Arms.Again {
		spread = max(spread, distance(again, 1))
	}
	return spread
}

// distance returns by how much the larger of two positive numbers exceeds the smaller, relative to the smaller.
func distance(x, y float64) float64 { return max(x/y, y/x) - 1 }

// Differs reports whether a ratio is resolved from x: its median at least twice the spread of its A/A arm away, and all its values on one
// side. A ratio without values, or without an A/A arm, is not.
func (f Figure) Differs(x float64) bool {
	median := f.Median()
	if len(f.Values) == 0 || f.Arms == nil || len(f.Arms.Again) == 0 || f.Min() < x && x < f.Max() {
		return false
	}
	return median <= 0 || distance(median, x) >= 2*f.Spread()
}

// Result is whether a figure meets its target.
type Result string

// The results. A figure is not resolved when only some of its values meet the target, and a ratio when it is closer to the target than
// twice the spread of its A/A arm, too.
const (
	NoTarget    Result = ""
	Met         Result = "met"
	NotMet      Result = "not met"
	NotResolved Result = "not resolved"
)

// Result returns whether the figure meets its target.
func (f Figure) Result() Result {
	if f.Target == nil {
		return NoTarget
	}
	meets := f.Target.meets(f.Median())
	switch {
	case len(f.Values) == 0, f.Arms != nil && !f.Differs(f.Target.Limit),
		f.Arms == nil && f.Target.meets(f.Min()) != f.Target.meets(f.Max()):
		return NotResolved
	case meets:
		return Met
	default:
		return NotMet
	}
}

// difference returns by how much a ratio differs from 1, in percent, and whether that is resolved; nil for other figures.
func (f Figure) difference() *difference {
	if f.Arms == nil || len(f.Values) == 0 {
		return nil
	}
	return &difference{Percent: 100 * (f.Median() - 1), Resolved: f.Differs(1)}
}

type difference struct {
	Percent  float64 `json:"percent"`
	Resolved bool    `json:"resolved"`
}

// MarshalJSON implements json.Marshaler, with what follows from the values.
func (f Figure) MarshalJSON() ([]byte, error) {
	out := struct {
		Name          string      `json:"name"`
		Median        float64     `json:"median"`
		Values        []float64   `json:"values"`
		Target        *Target     `json:"target,omitempty"`
		Result        Result      `json:"result,omitempty"`
		Arms          *Arms       `json:"arms,omitempty"`
		SpreadPercent *float64    `json:"spreadPercent,omitempty"`
		Difference    *difference `json:"difference,omitempty"`
	}{
		Name: f.Name, Median: f.Median(), Values: f.Values, Target: f.Target, Result: f.Result(), Arms: f.Arms, Difference: f.difference(),
	}
	if f.Arms != nil && len(f.Arms.Again) > 0 {
		percent := 100 * f.Spread()
		out.SpreadPercent = &percent
	}
	return json.Marshal(out)
}

// Quantile returns the q-quantile of values, one of them; 0 when there are none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

// QuantileUp is quantile, rounded to the larger neighbour.
func QuantileUp(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted)-1)))]
}

// Number formats x with three significant digits, and large numbers with separators.
func Number(x float64) string {
	if x < 0 {
		return "-" + Number(-x)
	}
	switch {
	case x == float64(int64(x)) && x < 1000:
		return strconv.FormatInt(int64(x), 10)
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	var groups []string
	for len(digits) > 3 {
		groups = append(groups, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	groups = append(groups, digits)
	slices.Reverse(groups)
	return strings.Join(groups, ",")
}
