package app

import "testing"

type loader []string

func (l loader) Loading() []string { return l }

func TestStillLoading(t *testing.T) {
	for name, c := range map[string]struct {
		index any
		want  bool
	}{
		"an index that cannot be searched yet": {loader{"analyses"}, true},
		"one that can":                         {loader{}, false},
		"one that does not load":               {struct{}{}, false},
	} {
		if got := stillLoading(c.index); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
