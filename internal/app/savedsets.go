package app

import (
	"context"
	"fmt"
	"slices"

	"tutti/internal/core"
	"tutti/internal/download/extract"
	"tutti/internal/graph"
	"tutti/internal/index"
	"tutti/internal/search"
	"tutti/internal/sets"
)

// maxListedMembers is how many members the sets of one list may have together, because a list contains them.
const maxListedMembers = 1_000_000

// savedSets implements GraphQL's saved sets. It reads members through the caller's view, so a set contains only documents that the
// caller may see.
type savedSets struct{ sets *sets.Service }

var _ graph.Sets = savedSets{}

func newSavedSets(s *sets.Service) savedSets { return savedSets{sets: s} }

// Save stores the values of a field in the matching documents.
func (s savedSets) Save(ctx context.Context, view *search.View, r graph.SetRequest) (graph.Set, error) {
	if err := s.sets.MayOwn(view.Who().ID); err != nil {
		return graph.Set{}, err
	}
	members, err := s.members(ctx, view, r)
	if err != nil {
		return graph.Set{}, err
	}
	saved, err := s.sets.Save(ctx, core.SavedSet{
		Owner: view.Who().ID, Catalogue: view.Model().Definition().ID, Type: r.Type, Path: r.Path, UserID: r.UserID, SQON: r.SQON,
	}, members)
	if err != nil {
		return graph.Set{}, err
	}
	return listedSet(saved, members), nil
}

// members returns the distinct values of the field, in the order of the documents.
func (s savedSets) members(ctx context.Context, view *search.View, r graph.SetRequest) ([]string, error) {
	if r.Field.Path == "_id" {
		// Check the count before reading them.
		results, err := view.Search(ctx, search.KindSet, []index.SearchRequest{{Filter: r.Filter, Total: true}})
		if err != nil {
			return nil, err
		}
		if err := s.sets.TooMany(results[0].Total); err != nil {
			return nil, err
		}
	}
	c := collector{seen: map[string]struct{}{}, sets: s.sets}
	req := index.StreamRequest{Filter: r.Filter, Sort: r.Sort}
	if r.Field.Path == "_id" {
		req.Source.None = true
	} else {
		path, held := extract.SourcePath(view.Model().Mapping(), r.Field.Path)
		if !held {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("the field %q is in no document", r.Path))
		}
		req.Source.Paths = []string{path}
		c.reader = extract.NewReader(extract.NewPlan([]string{path}, nil))
	}
	err := view.Stream(ctx, search.KindSet, req, c.add)
	return c.members, err
}

// collector collects distinct values.
type collector struct {
	sets    *sets.Service
	reader  *extract.Reader // nil for the ids of the documents
	seen    map[string]struct{}
	members []string
	bytes   int
	text    []byte
}

// add adds the values of hits. It returns an error once there are too many.
func (c *collector) add(hits []index.Hit) error {
	for _, hit := range hits {
		if c.reader == nil {
			c.text = append(c.text[:0], hit.ID...)
			if err := c.take(); err != nil {
				return err
			}
			continue
		}
		if err := c.reader.Rows(hit.Source, c.row); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) row(row *extract.Row) error {
	for _, v := range row.Values[0] {
		raw := v.Of(row.Doc)
		if raw[0] == '{' { // an object is not a field's value
			continue
		}
		c.text = extract.AppendText(c.text[:0], raw)
		if err := c.take(); err != nil {
			return err
		}
	}
	return nil
}

// take adds the current text as a member.
func (c *collector) take() error {
	if _, has := c.seen[string(c.text)]; has {
		return nil
	}
	member := string(c.text)
	c.seen[member] = struct{}{}
	c.members = append(c.members, member)
	c.bytes += len(member)
	if err := c.sets.TooLarge(c.bytes); err != nil {
		return err
	}
	return c.sets.TooMany(int64(len(c.members)))
}

// Find returns the matching sets of an owner, by default the newest first. It does not count as a use of a set, which would extend
// its expiry.
func (s savedSets) Find(ctx context.Context, owner string, q graph.SetQuery) ([]graph.Set, int, error) {
	match, err := newSetFilter(ctx, q.Filter)
	if err != nil {
		return nil, 0, err
	}
	order, err := newSetOrder(q.Sort)
	if err != nil {
		return nil, 0, err
	}
	all, err := s.sets.List(ctx, owner)
	if err != nil {
		return nil, 0, err
	}
	var found []core.SavedSet
	for _, set := range all {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		matches, err := match.set(set, func() ([]string, error) { return s.sets.Peek(ctx, owner, set.ID) })
		if err != nil {
			return nil, 0, err
		}
		if matches {
			found = append(found, set)
		}
	}
	slices.SortStableFunc(found, order.compare)
	page := found[min(q.Offset, len(found)):]
	page = page[:min(q.First, len(page))]
	if q.Members {
		listed, err := s.listed(ctx, owner, page)
		return listed, len(found), err
	}
	listed := make([]graph.Set, len(page))
	for i, set := range page {
		listed[i] = listedSet(set, nil)
	}
	return listed, len(found), nil
}

// listed returns sets with their members.
func (s savedSets) listed(ctx context.Context, owner string, page []core.SavedSet) ([]graph.Set, error) {
	count := 0
	for _, set := range page {
		count += set.Size
	}
	if count > maxListedMembers {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("these sets have %d members together, more than %d", count, maxListedMembers),
			Hint: "ask for fewer sets at once, by first and offset",
		}
	}
	listed := make([]graph.Set, 0, len(page))
	for _, set := range page {
		members, err := s.sets.Peek(ctx, owner, set.ID)
		if err != nil {
			return nil, err
		}
		listed = append(listed, listedSet(set, members))
	}
	return listed, nil
}

func listedSet(set core.SavedSet, members []string) graph.Set {
	return graph.Set{
		ID: set.ID, CreatedAt: set.CreatedAt, IDs: members, Path: set.Path, Size: set.Size, SQON: set.SQON, Type: set.Type, UserID: set.UserID,
	}
}
