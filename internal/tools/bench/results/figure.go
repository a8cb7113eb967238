package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Figure is one measured quantity.
type Figure struct {
	// Name describes the figure, with its unit.
	Name string `json:"name"`
	// Values are the values of the runs, in order.
	Values []float64 `json:"values"`
	// Target is the target of the median of Values, nil for none.
	Target *Target `json:"target,omitempty"`
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

// Min is the smallest of the values; this and the following functions return 0 when there are none.
func (f Figure) Min() float64 { return Quantile(f.Values, 0) }

// Median is the middle value, or the mean of the two middle values.
func (f Figure) Median() float64 {
	return (Quantile(f.Values, 0.5) + QuantileUp(f.Values, 0.5)) / 2
}

// Max is the largest of the values.
func (f Figure) Max() float64 { return Quantile(f.Values, 1) }

// Spread is the difference between the largest and smallest value, relative to the median.
func (f Figure) Spread() float64 {
	if f.Median() == 0 {
		return 0
	}
	return (f.Max() - f.Min()) / f.Median()
}

// Ratio compares the median with the target: the target is met from 1 on. It is 0 without a target.
func (f Figure) Ratio() float64 {
	median := f.Median()
	switch {
	case f.Target == nil:
		return 0
	case f.Target.AtLeast:
		return median / f.Target.Limit
	case median == 0:
		return 1
	default:
		return f.Target.Limit / median
	}
}

func (f Figure) values() string {
	if len(f.Values) == 1 {
		return Number(f.Values[0])
	}
	return "min " + Number(f.Min()) + ", median " + Number(f.Median()) + ", max " + Number(f.Max())
}

func (f Figure) verdict() string {
	if f.Target == nil {
		return ""
	}
	sign, word := "≤", "met"
	if f.Target.AtLeast {
		sign = "≥"
	}
	if f.Ratio() < 1 {
		word = "missed"
	}
	return fmt.Sprintf("target %s %s: %s, %.2f times as good", sign, Number(f.Target.Limit), word, f.Ratio())
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
	at := q * float64(len(sorted)-1)
	i := int(at)
	if float64(i) < at {
		i++
	}
	return sorted[i]
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
