// Package kindstest generates sets of values whose JSON kinds differ, and says which of them an index that was rebuilt rejects. It shares no
// code with what it judges.
package kindstest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Cases returns the number of sets of a test: TUTTI_TEST_CASES, or the given one.
func Cases(tb testing.TB, by int) int { return number(tb, "TUTTI_TEST_CASES", by) }

// Orders returns the number of orders in which a test processes them: TUTTI_TEST_ORDERS, or the given one.
func Orders(tb testing.TB, by int) int { return number(tb, "TUTTI_TEST_ORDERS", by) }

func number(tb testing.TB, variable string, by int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return by
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// Set is the values of one field, in JSON, of as many records.
type Set []string

// Generate returns a set.
func Generate(rng *rand.Rand) Set {
	scalar := []func() string{
		func() string { return strconv.Itoa(rng.IntN(4)) },
		func() string { return fmt.Sprintf("%d.5", rng.IntN(4)) },
		func() string { return []string{"true", "false"}[rng.IntN(2)] },
		func() string { return []string{`"yes"`, `"unknown"`, `""`, `"1"`, `"true"`}[rng.IntN(5)] },
		func() string { return []string{`"2020-01-01"`, `"2021-02-03T04:05:06Z"`}[rng.IntN(2)] },
		func() string { return []string{`"2020-01-01"`, `"2020"`, `"2020-01"`}[rng.IntN(3)] },
	}
	some := []func() string{scalar[rng.IntN(len(scalar))], scalar[rng.IntN(len(scalar))]}
	value := func() string { return some[rng.IntN(len(some))]() }
	object := func() string { return fmt.Sprintf(`{"a":%s}`, value()) }
	all := append(slices.Clone(scalar), object, object,
		func() string { return fmt.Sprintf(`{"a.b":%s,"c":%s}`, value(), value()) },
		func() string { return fmt.Sprintf(`[%s,%s]`, object(), object()) },
		func() string { return fmt.Sprintf(`[%s,[%s]]`, value(), value()) },
		func() string { return []string{"{}", "[]", "null", `{"a":null}`, `[{}]`}[rng.IntN(5)] })
	pool := make([]func() string, 1+rng.IntN(3))
	for i := range pool {
		pool[i] = all[rng.IntN(len(all))]
	}
	set := make(Set, 2+rng.IntN(7))
	for i := range set {
		set[i] = pool[rng.IntN(len(pool))]()
	}
	return set
}

// Rejected returns the numbers of the records whose values a rebuilt index rejects, sorted: at each path, those of another kind than most
// records hold, in a tie object before number before boolean before text.
func (s Set) Rejected(tb testing.TB) []int {
	tb.Helper()
	values := make(map[int][]any, len(s))
	for i, text := range s {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			tb.Fatal(err)
		}
		values[i] = flat(value)
	}
	bad := map[int]bool{}
	judge(values, bad)
	var numbers []int
	for i := range s {
		if bad[i] {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// flat returns the elements of a value, without nulls.
func flat(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		var all []any
		for _, element := range v {
			all = append(all, flat(element)...)
		}
		return all
	default:
		return []any{v}
	}
}

// judge judges the values at one path, by record, and those below it.
func judge(values map[int][]any, bad map[int]bool) {
	kinds := []string{"object", "number", "boolean", "text"}
	holds := map[string]map[int]bool{}
	below := map[string]map[int][]any{}
	for record, all := range values {
		for _, value := range all {
			kind := kindOf(value)
			if holds[kind] == nil {
				holds[kind] = map[int]bool{}
			}
			holds[kind][record] = true
			for name, member := range members(value) {
				if below[name] == nil {
					below[name] = map[int][]any{}
				}
				below[name][record] = append(below[name][record], flat(member)...)
			}
		}
	}
	best := ""
	for _, kind := range kinds {
		if len(holds[kind]) > len(holds[best]) {
			best = kind
		}
	}
	for kind, records := range holds {
		for record := range records {
			bad[record] = bad[record] || kind != best
		}
	}
	if best == "object" {
		for _, values := range below {
			judge(values, bad)
		}
	}
}

// members returns the members of an object: a name with a dot is an object with a member.
func members(value any) map[string]any {
	object, _ := value.(map[string]any)
	out := map[string]any{}
	for name, member := range object {
		if name == "a.b" {
			member = []any{out["a"], map[string]any{"b": member}}
			name = "a"
		}
		out[name] = member
	}
	return out
}

func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case float64:
		return "number"
	case bool:
		return "boolean"
	default:
		return "text"
	}
}
