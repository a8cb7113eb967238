package main

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// path is what one value passes: functions with the parameter that is followed in each. A value that crosses the queue has several.
type path struct {
	name   string
	starts []start
	// scope are the folders of the module, with those below them, whose code is walked.
	scope []string
	// ports names the type behind an interface that several types implement.
	ports map[string]string
	// without are functions that only a value of another kind enters, though a loop or the end of a function calls them.
	without []string
}

// start is a function, or one that makes a literal, and the name of the parameter or the receiver to follow.
type start struct{ function, parameter string }

// paths are those of tutti on which nothing fails: a page of a list, and one record from its trigger to its acknowledgement.
func paths() []path {
	return []path{
		{
			name:   "page",
			starts: []start{{"consumers/page.Worker.handle", "m"}},
			scope:  []string{"consumers"},
			// A page that is read again, and rows that cannot be documents.
			without: []string{"consumers/page.work.recordSettled", "consumers/page.pass.storeAside"},
		},
		{
			name: "record",
			starts: []start{
				{"http/indexing.triggers.record", "r"}, {"consumers/loop.Loop.Pull", "src"}, {"consumers/record.Worker.Process", "m"},
			},
			scope: []string{"consumers", "http", "ingest", "internal/index/bulk", "internal/core", "internal/queue"},
			ports: map[string]string{"consumers/record.documents": "consumers/record.single", "internal/core.Message": "internal/queue.message"},
		},
	}
}

// entries returns the files that a path enters, in order.
func (m *module) entries(p path) ([]string, error) {
	for _, name := range p.without {
		if !slices.ContainsFunc(slices.Collect(maps.Values(m.code)), func(f *function) bool { return f.name == name }) {
			return nil, notFoundError(name)
		}
	}
	var entries []string
	for _, s := range p.starts {
		f, param, err := m.find(s)
		if err != nil {
			return nil, err
		}
		w := &walker{
			module: m, path: p, follow: map[types.Object]bool{param: true}, bound: map[types.Object]*function{},
			stack: map[*ast.BlockStmt]bool{}, entries: entries,
		}
		w.walk(f)
		entries = w.entries
	}
	return entries, nil
}

type notFoundError string

func (e notFoundError) Error() string { return "no function " + string(e) }
