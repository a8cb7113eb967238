package searchtest

import (
	"context"

	"tutti/internal/filter/sqon"
	"tutti/internal/index"
)

// probe is a request that depends on a filter, so that it can be repeated with a smaller one.
type probe struct {
	what   string
	filter sqon.Filter
	// build returns the request for a filter, and a function that compares its result with the oracle's.
	build func(ctx context.Context, f sqon.Filter) (index.SearchRequest, diffFunc, error)
}

// diffFunc returns how a result differs from the expected one, "" for equal.
type diffFunc func(index.SearchResult) string

// searchAll runs probes in one Search.
func (w *fixture) searchAll(probes []probe) {
	w.Helper()
	requests := make([]index.SearchRequest, len(probes))
	judges := make([]diffFunc, len(probes))
	for i, p := range probes {
		var err error
		if requests[i], judges[i], err = p.build(w.Context(), p.filter); err != nil {
			w.differs(p.what, filterText(p.filter), "making the request: "+err.Error())
			return
		}
	}
	results, err := w.x.Search(w.Context(), w.alias, requests)
	if err != nil || len(results) != len(requests) {
		w.searchEach(probes, err)
		return
	}
	for i, p := range probes {
		if difference := judges[i](results[i]); difference != "" {
			w.report(p, difference)
		}
	}
}

// searchEach runs probes one by one, after they failed together.
func (w *fixture) searchEach(probes []probe, together error) {
	w.Helper()
	found := false
	for _, p := range probes {
		if difference := w.check(p, p.filter); difference != "" {
			found = true
			w.report(p, difference)
		}
	}
	if !found {
		w.differs("several requests", "several filters", "together they returned "+errorText(together)+", one by one they succeed")
	}
}

// check runs a probe with a filter and returns what is wrong with the result.
func (w *fixture) check(p probe, f sqon.Filter) string {
	request, judge, err := p.build(w.Context(), f)
	if err != nil {
		return "making the request: " + err.Error()
	}
	results, err := w.x.Search(w.Context(), w.alias, []index.SearchRequest{request})
	switch {
	case err != nil:
		return "Search: " + errorText(err)
	case len(results) != 1:
		return "Search returned a different number of results than requests"
	default:
		return judge(results[0])
	}
}

func errorText(err error) string {
	if err == nil {
		return "a wrong number of results"
	}
	return err.Error()
}

// report reports a failed probe with the smallest filter that fails.
func (w *fixture) report(p probe, seen string) {
	w.Helper()
	f, difference := p.filter, w.check(p, p.filter)
	if difference == "" {
		w.differs(p.what, filterText(f), "correct alone, but not with other requests:\n"+seen)
		return
	}
	whole := filterText(f)
	for tries := 0; tries < 200; {
		smaller := false
		for _, candidate := range smallerThan(f) {
			tries++
			if candidate.Check(w.oracle.Fields) != nil {
				continue
			}
			if d := w.check(p, candidate); d != "" {
				f, difference, smaller = candidate, d, true
				break
			}
		}
		if !smaller {
			break
		}
	}
	w.differs(p.what, filterText(f), difference+"\nfirst seen with "+whole)
}

func filterText(f sqon.Filter) string { return string(f.AppendJSON(nil)) }

// smallerThan returns variants of a filter that are a little smaller.
func smallerThan(f sqon.Filter) []sqon.Filter {
	if f.Root == nil {
		return nil
	}
	out := []sqon.Filter{{}}
	for _, n := range smallerNodes(f.Root) {
		out = append(out, sqon.Filter{Root: n})
	}
	return out
}

func smallerNodes(n *sqon.Node) []*sqon.Node {
	var out []*sqon.Node
	if n.Pivot != "" {
		bare := *n
		bare.Pivot = ""
		out = append(out, &bare)
	}
	out = append(out, n.Content...)
	for i, member := range n.Content {
		less := *n
		less.Content = without(n.Content, i)
		out = append(out, &less)
		for _, smaller := range smallerNodes(member) {
			other := *n
			other.Content = append(append([]*sqon.Node{}, n.Content[:i]...), smaller)
			other.Content = append(other.Content, n.Content[i+1:]...)
			out = append(out, &other)
		}
	}
	if len(n.Values) > 1 && n.Op != sqon.Between {
		for i := range n.Values {
			less := *n
			less.Values = without(n.Values, i)
			out = append(out, &less)
		}
	}
	if len(n.Fields) > 1 {
		for i := range n.Fields {
			less := *n
			less.Fields = without(n.Fields, i)
			out = append(out, &less)
		}
	}
	return out
}

// without returns a list without one of its items.
func without[T any](list []T, i int) []T {
	return append(append([]T{}, list[:i]...), list[i+1:]...)
}
