package searchtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/model"
)

const pagesMapping = `{"properties":{"k":{"type":"keyword"},"n":{"type":"long"},"shown":{"type":"boolean"}}}`

// RunPages pages through documents that do not have their id in a field: each must be returned once, in every order, page size and
// filter, and cursors must not depend on documents that the filter hides. open is called once.
func RunPages(t *testing.T, open func(t *testing.T) index.Index) {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: "pages"}
	tree, err := mapping.Parse([]byte(pagesMapping))
	if err != nil {
		t.Fatal(err)
	}
	w.createAlias(tree)
	var batches [][]change
	for round := range 3 { // rewriting changes the order of writes
		var batch []change
		for n := range 24 {
			if round == 0 || n%(3*round) == 0 {
				k := ""
				if n%5 > 0 {
					k = fmt.Sprintf(`"k":"k%d",`, n%5)
				}
				batch = append(batch, change{fmt.Sprintf("p%02d", n), fmt.Sprintf(`{%s"n":%d,"shown":%t}`, k, n%4, n%3 > 0)})
			}
		}
		batches = append(batches, batch)
	}
	w.write(batches)

	id := index.Sort{Field: query.Field{Path: "_id", Type: "keyword"}}
	down := id
	down.Descending, down.MissingFirst = true, true
	k, n := w.sort("k"), w.sort("n")
	first := k
	first.Descending, first.MissingFirst = true, true
	for name, by := range map[string][]index.Sort{
		"id": {id}, "id downwards": {down}, "text downwards": {first, down}, "two keys": {n, k, id}, "keys behind the id": {n, id, k},
	} {
		for filter, restricted := range map[string]bool{`{}`: false, `{"op":"in","content":{"fieldName":"shown","value":[true]}}`: true} {
			t.Run(fmt.Sprintf("%s, restricted %t", name, restricted), func(t *testing.T) {
				p := &pager{fixture: w.with(t), filter: filter, hits: index.HitsRequest{
					Sort: by, Source: index.Source{None: true}, Restricted: restricted,
				}}
				p.want = w.expectedIDs(p.parse(filter), by)
				slices.Sort(p.want)
				for _, size := range []int{1, 5, 100} {
					p.walk(size)
				}
				p.cursors()
				p.stream()
			})
		}
	}
	t.Run("a cursor that is none", func(t *testing.T) {
		for _, raw := range []string{`17`, `{}`, `true`} {
			_, err := w.x.Search(t.Context(), w.alias, []index.SearchRequest{{
				Hits: &index.HitsRequest{Size: 1, Sort: []index.Sort{id}, After: []json.RawMessage{[]byte(raw)}},
			}})
			if core.CodeOf(err) != core.CodeInvalid {
				t.Errorf("after %s: %v", raw, err)
			}
		}
	})
}

// pager reads pages of the documents that match a filter.
type pager struct {
	*fixture
	filter string
	hits   index.HitsRequest
	// want are the ids of all matching documents, sorted.
	want []string
}

// page returns the documents after a cursor, nil for the first ones.
func (p *pager) page(after []json.RawMessage, size int) []index.Hit {
	p.Helper()
	hits := p.hits
	hits.After, hits.Size = after, size
	found := p.search(index.SearchRequest{Filter: p.lower(p.filter), Total: true, Hits: &hits})
	if found.Total != int64(len(p.want)) {
		p.Errorf("a page counts %d documents, want %d", found.Total, len(p.want))
	}
	return found.Hits
}

// walk reads all pages of a size.
func (p *pager) walk(size int) {
	p.Helper()
	var got []string
	var after []json.RawMessage
	for len(got) <= len(p.want) {
		hits := p.page(after, size)
		got = append(got, idsOf(hits)...)
		if len(hits) < size {
			break
		}
		after = hits[len(hits)-1].Sort
	}
	if by := p.hits.Sort[:1]; by[0].Field.Path != "_id" {
		p.inOrderOf(got, by)
	}
	slices.Sort(got)
	if !slices.Equal(got, p.want) {
		p.Errorf("pages of %d: got  %q\nwant %q", size, got, p.want)
	}
}

// inOrderOf checks that documents are in the order of a key.
func (p *pager) inOrderOf(ids []string, by []index.Sort) {
	p.Helper()
	var found []*model.Element
	for _, id := range ids {
		at := slices.IndexFunc(p.oracle.Documents, func(d *model.Element) bool { return d.ID == id })
		found = append(found, p.oracle.Documents[at])
	}
	for i, d := range p.oracle.Sorted(found, by) {
		if d != found[i] {
			p.Errorf("%q is not in order", ids)
			return
		}
	}
}

// cursors checks the cursors of all documents, and the documents after one in the middle.
func (p *pager) cursors() {
	p.Helper()
	all := p.page(nil, 100)
	at := slices.IndexFunc(p.hits.Sort, func(s index.Sort) bool { return s.Field.Path == "_id" })
	for _, h := range all {
		cursor, other := h.Sort[at], all[0].Sort[at]
		if cursor[0] != '"' || p.hits.Restricted && len(cursor) != len(other) {
			p.Errorf("the cursor of %s is %s, that of %s %s", h.ID, cursor, all[0].ID, other)
		}
	}
	middle := len(all) / 2
	rest := p.page(all[middle].Sort, 100)
	if got, want := idsOf(rest), idsOf(all[middle+1:]); !slices.Equal(got, want) {
		p.Errorf("after %s: got %q, want %q", all[middle].ID, got, want)
	}
}

// stream reads all documents as a stream.
func (p *pager) stream() {
	p.Helper()
	var got []string
	req := index.StreamRequest{Filter: p.lower(p.filter), Sort: p.hits.Sort, Source: p.hits.Source}
	err := p.x.Stream(p.Context(), p.alias, req, func(hits []index.Hit) error {
		got = append(got, idsOf(hits)...)
		return nil
	})
	if slices.Sort(got); err != nil || !slices.Equal(got, p.want) {
		p.Errorf("a stream: got %q, %v, want %q", got, err, p.want)
	}
}

func idsOf(hits []index.Hit) []string {
	var ids []string
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}
