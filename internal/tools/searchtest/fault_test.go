package searchtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/draw"
)

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorder) FailNow() { runtime.Goexit() }

// TestSuiteFinds modifies the requests to an engine, and expects the suite to find that the results are wrong.
func TestSuiteFinds(t *testing.T) {
	each := func(change func(*query.Node) *query.Node) func(*index.SearchRequest) {
		return func(r *index.SearchRequest) { r.Filter = changed(r.Filter, change) }
	}
	for name, fault := range map[string]func(*index.SearchRequest){
		"filters are not asked": func(r *index.SearchRequest) { r.Filter = nil },
		"not is forgotten": each(func(n *query.Node) *query.Node {
			if n.Op == query.Not {
				return n.Children[0]
			}
			return n
		}),
		"bounds are inclusive": each(func(n *query.Node) *query.Node {
			out := *n
			out.From.Inclusive, out.To.Inclusive = true, true
			return &out
		}),
		"the case counts": each(func(n *query.Node) *query.Node {
			out := *n
			out.Fold = false
			return &out
		}),
		"a term is lost": each(func(n *query.Node) *query.Node {
			out := *n
			out.Terms = n.Terms[:max(0, len(n.Terms)-1)]
			return &out
		}),
		"elements are not narrowed": func(r *index.SearchRequest) {
			for i := range r.Facets {
				r.Facets[i].Elements = nil
			}
		},
		"buckets have no filters": func(r *index.SearchRequest) {
			for i, f := range r.Facets {
				if f.Buckets != nil {
					other := *f.Buckets
					for j := range other.Filters {
						other.Filters = append([]*query.Node{}, other.Filters...)
						other.Filters[j] = nil
					}
					r.Facets[i].Buckets = &other
				}
			}
		},
		"modes are not kept": func(r *index.SearchRequest) {
			if r.Hits != nil {
				other := *r.Hits
				other.Sort = append([]index.Sort{}, other.Sort...)
				for i := range other.Sort {
					other.Sort[i].Mode = ""
				}
				r.Hits = &other
			}
		},
		"one hit is missing": func(r *index.SearchRequest) {
			if r.Hits != nil {
				other := *r.Hits
				other.Size = max(0, other.Size-1)
				r.Hits = &other
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				d := draw.New(7)
				w := &fixture{TB: r, x: &naive{fault: fault}, reproduction: "a spoiled engine"}
				tree := draw.Mapping([]string{"keyword", "long", "double", "date", "text", "ip"})
				w.createAlias(tree)
				w.write(drawHistory(d, tree, 50))
				w.checkRandomFilters(d, 400)
			}()
			<-done
			if len(r.failures) == 0 {
				t.Error("the suite found nothing")
			} else if !strings.Contains(r.failures[0], "a spoiled engine") {
				t.Error("the suite failed in another way: " + r.failures[0])
			}
		})
	}
}

// changed returns a copy of a tree with every node changed.
func changed(n *query.Node, change func(*query.Node) *query.Node) *query.Node {
	if n == nil {
		return nil
	}
	out := *n
	out.Children = nil
	for _, child := range n.Children {
		out.Children = append(out.Children, changed(child, change))
	}
	return change(&out)
}
