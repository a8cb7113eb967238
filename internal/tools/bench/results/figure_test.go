package results_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"tutti/internal/tools/bench/results"
)

func TestFigure(t *testing.T) {
	for _, test := range []struct {
		name              string
		values            []float64
		low, median, high float64
	}{
		{name: "none"},
		{name: "one", values: []float64{4}, low: 4, median: 4, high: 4},
		{name: "odd", values: []float64{9, 1, 2}, low: 1, median: 2, high: 9},
		{name: "even", values: []float64{4, 1, 2, 8}, low: 1, median: 3, high: 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := results.Figure{Values: test.values}
			for what, pair := range map[string][2]float64{
				"min": {f.Min(), test.low}, "median": {f.Median(), test.median}, "max": {f.Max(), test.high},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
				}
			}
			if f.Differs(1) || f.Spread() != 0 {
				t.Errorf("a figure without arms differs from 1, or has the spread %v", f.Spread())
			}
		})
	}
}

func TestAlternate(t *testing.T) {
	var order strings.Builder
	n := 0
	run := func(arm string) func() (int, error) {
		return func() (int, error) {
			order.WriteString(arm)
			n++
			return n, nil
		}
	}
	bases, others, err := results.Alternate(3, run("A"), run("B"))
	if err != nil || order.String() != "ABABABA" || !slices.Equal(bases, []int{1, 3, 5, 7}) || !slices.Equal(others, []int{2, 4, 6}) {
		t.Errorf("%v, in the order %s: bases %v, others %v", err, order.String(), bases, others)
	}
	failure := errors.New("no")
	if _, _, err := results.Alternate(3, run("A"), func() (int, error) { return 0, failure }); !errors.Is(err, failure) {
		t.Errorf("the error of a run became %v", err)
	}
}

// TestRatio judges ratios. Each base differs from its neighbours, so that a wrong pairing has other values.
func TestRatio(t *testing.T) {
	atLeast, atMost := results.AtLeast(0.8), results.AtMost(1.25)
	for _, test := range []struct {
		name        string
		target      *results.Target
		base, other []float64
		values      []float64
		spread      float64
		differs     bool
		result      results.Result
	}{
		{
			name: "each of other is divided by the bases around it", base: []float64{100, 110, 99, 121}, other: []float64{210, 209, 330},
			values: []float64{2, 2, 3}, spread: 121./99 - 1, differs: true,
		},
		{
			name: "no difference is resolved below twice the spread", base: []float64{100, 110}, other: []float64{125},
			values: []float64{125. / 105}, spread: 0.1,
		},
		{
			name: "a difference is resolved from twice the spread on", base: []float64{100, 110}, other: []float64{126.5},
			values: []float64{126.5 / 105}, spread: 0.1, differs: true,
		},
		{
			name: "a base that becomes slower has the spread of one that becomes faster", base: []float64{110, 100}, other: []float64{125},
			values: []float64{125. / 105}, spread: 0.1,
		},
		{
			name: "a smaller ratio is as far away as its inverse", base: []float64{100, 110}, other: []float64{105 / 1.19},
			values: []float64{1 / 1.19}, spread: 0.1,
		},
		{
			name: "at least, met", target: atLeast, base: []float64{100, 100, 102}, other: []float64{90, 90.9},
			values: []float64{0.9, 0.9}, spread: 0.02, differs: true, result: results.Met,
		},
		{
			name: "at least, met though the arms do not differ", target: atLeast, base: []float64{100, 104}, other: []float64{102},
			values: []float64{1}, spread: 0.04, result: results.Met,
		},
		{
			name: "at least, not met", target: atLeast, base: []float64{100, 102}, other: []float64{70.7},
			values: []float64{0.7}, spread: 0.02, differs: true, result: results.NotMet,
		},
		{
			name: "at least, above the target by less than twice the spread", target: atLeast, base: []float64{100, 104}, other: []float64{85.68},
			values: []float64{0.84}, spread: 0.04, differs: true, result: results.NotResolved,
		},
		{
			name: "at least, below the target by less than twice the spread", target: atLeast, base: []float64{100, 104}, other: []float64{78.54},
			values: []float64{0.77}, spread: 0.04, differs: true, result: results.NotResolved,
		},
		{
			name: "at most, met", target: atMost, base: []float64{100, 102}, other: []float64{111.1},
			values: []float64{1.1}, spread: 0.02, differs: true, result: results.Met,
		},
		{
			name: "at most, not met", target: atMost, base: []float64{100, 102}, other: []float64{151.5},
			values: []float64{1.5}, spread: 0.02, differs: true, result: results.NotMet,
		},
		{
			name: "at most, not resolved", target: atMost, base: []float64{100, 104}, other: []float64{132.6},
			values: []float64{1.3}, spread: 0.04, differs: true, result: results.NotResolved,
		},
		{
			name: "exactly the target without noise", target: atLeast, base: []float64{100, 100}, other: []float64{80},
			values: []float64{0.8}, differs: true, result: results.Met,
		},
		{
			name: "values on both sides of the target, and of 1", target: atLeast, base: []float64{100, 100, 100, 100}, other: []float64{110, 90, 78},
			values: []float64{1.1, 0.9, 0.78}, result: results.NotResolved,
		},
		{name: "no A/A arm", target: atLeast, base: []float64{100}, other: []float64{200}, values: []float64{2}, result: results.NotResolved},
		{name: "no base", target: atLeast, other: []float64{200}, result: results.NotResolved},
		{name: "no other", target: atLeast, base: []float64{100, 110}, spread: 0.1, result: results.NotResolved},
		{name: "no arms", target: atMost, result: results.NotResolved},
		{name: "a base of 0", target: atMost, base: []float64{0, 0}, other: []float64{3}, result: results.NotResolved},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := results.Ratio("ratio", test.target, test.base, test.other)
			if !slices.EqualFunc(f.Values, test.values, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
				t.Errorf("the values are %v, want %v", f.Values, test.values)
			}
			if math.Abs(f.Spread()-test.spread) > 1e-9 || f.Differs(1) != test.differs || f.Result() != test.result {
				t.Errorf("spread %v, differs %v, result %q; want %v, %v, %q", f.Spread(), f.Differs(1), f.Result(), test.spread, test.differs, test.result)
			}
			if _, err := json.Marshal(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestResult judges figures without arms.
func TestResult(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		target *results.Target
		want   results.Result
	}{
		{"no target", []float64{1}, nil, results.NoTarget},
		{"no values", nil, results.AtMost(5), results.NotResolved},
		{"at least, met", []float64{9, 8, 10}, results.AtLeast(8), results.Met},
		{"at least, not met", []float64{7, 6}, results.AtLeast(8), results.NotMet},
		{"at least, some of the runs", []float64{9, 10, 7}, results.AtLeast(8), results.NotResolved},
		{"at most, met", []float64{7, 8}, results.AtMost(8), results.Met},
		{"at most, not met", []float64{10, 9}, results.AtMost(8), results.NotMet},
		{"at most, some of the runs", []float64{7, 9, 10}, results.AtMost(8), results.NotResolved},
		{"none allowed, none found", []float64{0}, results.AtMost(0), results.Met},
		{"none allowed, one found", []float64{1}, results.AtMost(0), results.NotMet},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := results.Figure{Values: test.values, Target: test.target}
			if got := f.Result(); got != test.want {
				t.Errorf("the result is %q, want %q", got, test.want)
			}
		})
	}
}

func sample() results.All {
	report := results.Report{Name: "speed", What: "how fast", Notes: []string{"a remark"}, Seconds: 12}
	report.Add(
		results.Figure{Name: "documents/s", Values: []float64{1234567, 16000, 15000}, Target: results.AtLeast(15_000)},
		results.Figure{Name: "ms", Values: []float64{3.456}, Target: results.AtMost(2)},
		results.Ratio("tutti / engine", results.AtLeast(0.8), []float64{100, 104}, []float64{85.68}),
		results.Ratio("beside / alone", nil, []float64{100, 104}, []float64{100}),
		results.Ratio("lone", nil, []float64{100}, []float64{200}),
	)
	return results.All{
		Reports: []results.Report{report, {Name: "other", Figures: []results.Figure{{Name: "lost", Values: []float64{0}}}}},
		Failed:  map[string]string{"third": "no engine"},
	}
}

const wantLines = "  documents/s      16,000   15,000 to 1,234,567   ≥ 15,000   met\n" +
	"  ms               3.46                           ≤ 2        not met\n" +
	"  tutti / engine   0.84                           ≥ 0.80     not resolved   4.0 %        -16.0 %\n" +
	"  beside / alone   0.98                                                     4.0 %        -2.0 %, not resolved\n" +
	"  lone             2                                                        no A/A arm   +100.0 %, not resolved\n"

func TestText(t *testing.T) {
	all := sample()
	const header = "  figure           median   min to max            target     result         A/A spread   difference\n"
	if got, want := all.Reports[0].String(), "speed: how fast\n"+header+wantLines+"  a remark\n  took 12 s\n"; got != want {
		t.Errorf("a report:\n%s\nwant\n%s", got, want)
	}
	want := "All figures, each judged by its median:\n" + header + "speed\n" + wantLines + "other\n  lost             0\n" +
		"third failed: no engine\ntargets: 1 met, 1 not met, 1 not resolved\n" +
		"The targets are for the default sizes; these were others.\nA ratio compares two arms"
	if got := all.String(); !strings.HasPrefix(got, want) {
		t.Errorf("all:\n%s\nwant\n%s", got, want)
	}
	if all.DefaultSizes = true; strings.Contains(all.String(), "default sizes") {
		t.Errorf("all at the default sizes:\n%s", all)
	}
}

func TestJSON(t *testing.T) {
	var out strings.Builder
	if err := sample().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Reports []struct {
			Figures []json.RawMessage `json:"figures"`
		} `json:"reports"`
		Targets map[results.Result]int `json:"targets"`
		Failed  map[string]string      `json:"failed"`
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Targets[results.Met] != 1 || got.Targets[results.NotMet] != 1 || got.Targets[results.NotResolved] != 1 || got.Failed["third"] != "no engine" {
		t.Errorf("the targets are %v, failed %v", got.Targets, got.Failed)
	}
	var ratio map[string]any
	if err := json.Unmarshal(got.Reports[0].Figures[3], &ratio); err != nil {
		t.Fatal(err)
	}
	arms, _ := ratio["arms"].(map[string]any)
	difference, _ := ratio["difference"].(map[string]any)
	spread, _ := ratio["spreadPercent"].(float64)
	if len(arms) != 3 || difference["resolved"] != false || math.Abs(spread-4) > 1e-9 || ratio["result"] != nil {
		t.Errorf("the ratio is %v", ratio)
	}
}
