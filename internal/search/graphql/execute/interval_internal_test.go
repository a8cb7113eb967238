package execute

import "testing"

// TestRangeName: the keys are those that Elasticsearch and OpenSearch choose, whose numbers are Java's.
func TestRangeName(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		from, to *float64
		date     bool
		want     string
	}{
		{nil, nil, false, "*-*"},
		{at(0), at(10), false, "0.0-10.0"},
		{at(-0.5), nil, false, "-0.5-*"},
		{nil, at(9_999_999), false, "*-9999999.0"},
		{at(1e7), at(123_456_789), false, "1.0E7-1.23456789E8"},
		{at(0.001), at(0.0015), false, "0.001-0.0015"},
		{at(0.00015), at(1e-7), false, "1.5E-4-1.0E-7"},
		{at(-1e300), at(1 << 53), false, "-1.0E300-9.007199254740992E15"},
		{at(0), at(1_483_228_800_000), true, "1970-01-01T00:00:00.000Z-2017-01-01T00:00:00.000Z"},
	} {
		if got := rangeName(c.from, c.to, c.date); got != c.want {
			t.Errorf("the key is %s, want %s", got, c.want)
		}
	}
}
