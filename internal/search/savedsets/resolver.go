package savedsets

import (
	"context"
	"fmt"
	"slices"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/download/extract"
	"tutti/internal/search/graphql"
	"tutti/internal/search/sets"
	"tutti/internal/search/view"
)

// maxListedMembers limits the total number of members of the sets in one list, which contains them.
const maxListedMembers = 1_000_000

// Resolver implements GraphQL's saved sets. It reads members through the caller's view, so a set contains only documents that the
// caller may see.
type Resolver struct{ sets *sets.Service }

var _ graphql.Sets = Resolver{}

// New returns a Resolver.
func New(s *sets.Service) Resolver { return Resolver{sets: s} }

// Save stores the values of a field in the matching documents.
func (s Resolver) Save(ctx context.Context, v *view.View, r graphql.SetRequest) (graphql.Set, error) {
	if err := s.sets.MayOwn(v.Who().ID); err != nil {
		return graphql.Set{}, err
	}
	members, err := s.members(ctx, v, r)
	if err != nil {
		return graphql.Set{}, err
	}
	saved, err := s.sets.Save(ctx, core.SavedSet{
		Owner: v.Who().ID, Catalogue: v.Model().Definition().ID, Type: r.Type, Path: r.Path, UserID: r.UserID, SQON: r.SQON,
	}, members)
	if err != nil {
		return graphql.Set{}, err
	}
	return listedSet(saved, members), nil
}

// members returns the distinct values of the field, in the order of the documents.
func (s Resolver) members(ctx context.Context, v *view.View, r graphql.SetRequest) ([]string, error) {
	if r.Field.Path == "_id" {
		// Check the count before reading them.
		results, err := v.Search(ctx, view.KindSet, []index.SearchRequest{{Filter: r.Filter, Total: true}})
		if err != nil {
			return nil, err
		}
		if err := s.sets.TooMany(results[0].Total); err != nil {
			return nil, err
		}
	}
	c := collector{seen: map[string]struct{}{}, sets: s.sets}
	req := index.StreamRequest{Filter: r.Filter, Sort: r.Sort, Caller: core.Caller{ID: v.Who().ID, Known: true}}
	if r.Field.Path == "_id" {
		req.Source.None = true
	} else {
		path, held := extract.SourcePath(v.Model().Mapping(), r.Field.Path)
		if !held {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("the field %q is in no document", r.Path))
		}
		req.Source.Paths = []string{path}
		c.reader = extract.NewReader(extract.NewPlan([]string{path}, nil))
	}
	err := v.Stream(ctx, view.KindSet, req, c.add)
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
		c.text = jsontext.AppendText(c.text[:0], raw)
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
func (s Resolver) Find(ctx context.Context, owner string, q graphql.SetQuery) ([]graphql.Set, int, error) {
	filter, err := newSetFilter(ctx, q.Filter)
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
	var matching []core.SavedSet
	for _, set := range all {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		found, err := matches(filter, set, func() ([]string, error) { return s.sets.Peek(ctx, owner, set.ID) })
		if err != nil {
			return nil, 0, err
		}
		if found {
			matching = append(matching, set)
		}
	}
	slices.SortStableFunc(matching, order.compare)
	page := matching[min(q.Offset, len(matching)):]
	page = page[:min(q.First, len(page))]
	listed, err := s.listed(ctx, owner, page, q.Members)
	return listed, len(matching), err
}

// listed returns sets, with their members if requested.
func (s Resolver) listed(ctx context.Context, owner string, page []core.SavedSet, withMembers bool) ([]graphql.Set, error) {
	count := 0
	for _, set := range page {
		count += set.Size
	}
	if withMembers && count > maxListedMembers {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("these sets have %d members together, more than %d", count, maxListedMembers),
			Hint: "request fewer sets at once, with first and offset",
		}
	}
	listed := make([]graphql.Set, 0, len(page))
	for _, set := range page {
		var members []string
		if withMembers {
			var err error
			if members, err = s.sets.Peek(ctx, owner, set.ID); err != nil {
				return nil, err
			}
		}
		listed = append(listed, listedSet(set, members))
	}
	return listed, nil
}

func listedSet(set core.SavedSet, members []string) graphql.Set {
	return graphql.Set{
		ID: set.ID, CreatedAt: set.CreatedAt, IDs: members, Path: set.Path, Size: set.Size, SQON: set.SQON, Type: set.Type, UserID: set.UserID,
	}
}
