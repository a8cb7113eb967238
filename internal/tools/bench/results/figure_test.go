package results_test

import (
	"math"
	"testing"

	"tutti/internal/tools/bench/results"
)

func TestFigure(t *testing.T) {
	for _, test := range []struct {
		name                          string
		values                        []float64
		target                        *results.Target
		low, median, high, rate, wide float64
	}{
		{name: "none"},
		{name: "one", values: []float64{4}, low: 4, median: 4, high: 4},
		{name: "odd", values: []float64{9, 1, 2}, low: 1, median: 2, high: 9, wide: 4},
		{name: "even", values: []float64{4, 1, 2, 8}, low: 1, median: 3, high: 8, wide: 7. / 3},
		{name: "at least", values: []float64{10}, target: &results.Target{Limit: 8, AtLeast: true}, low: 10, median: 10, high: 10, rate: 1.25},
		{name: "at most", values: []float64{10}, target: &results.Target{Limit: 8}, low: 10, median: 10, high: 10, rate: 0.8},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := results.Figure{Values: test.values, Target: test.target}
			for what, pair := range map[string][2]float64{
				"min": {f.Min(), test.low}, "median": {f.Median(), test.median}, "max": {f.Max(), test.high},
				"ratio": {f.Ratio(), test.rate}, "spread": {f.Spread(), test.wide},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
				}
			}
		})
	}
}

func TestReportAsText(t *testing.T) {
	r := results.Report{
		Name: "speed", What: "how fast", Notes: []string{"noise: some"}, Seconds: 12,
		Figures: []results.Figure{
			{Name: "documents/s", Values: []float64{1234567, 999.6, 15000}, Target: &results.Target{Limit: 15000, AtLeast: true}},
			{Name: "ms", Values: []float64{3.456}, Target: &results.Target{Limit: 2}},
		},
	}
	const want = "speed: how fast\n" +
		"  documents/s   min 1,000, median 15,000, max 1,234,567   target ≥ 15,000: met, 1.00 times as good\n" +
		"  ms            3.46                                      target ≤ 2: missed, 0.58 times as good\n" +
		"  noise: some\n" +
		"  took 12 s\n"
	if got := r.String(); got != want {
		t.Errorf("got\n%s", got)
	}
}
