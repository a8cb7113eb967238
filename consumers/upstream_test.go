package consumers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
)

// published is the one state that this upstream lists, as Song's paginated route does by default.
const published = "PUBLISHED"

// record is one record of the upstream.
type record struct {
	id    string
	org   string // its own organization
	state string
	rev   int
	pad   int    // bytes of text that the body has beside
	v     string // a value in JSON that the body has beside
}

func (r record) body() string {
	if r.v != "" {
		return fmt.Sprintf(`{"analysisId":%q,"studyId":%q,"analysisState":%q,"rev":%d,"v":%s}`, r.id, r.org, r.state, r.rev, r.v)
	}
	if r.pad > 0 {
		return fmt.Sprintf(`{"analysisId":%q,"studyId":%q,"analysisState":%q,"rev":%d,"pad":%q}`, r.id, r.org, r.state, r.rev, strings.Repeat("x", r.pad))
	}
	return fmt.Sprintf(`{"analysisId":%q,"studyId":%q,"analysisState":%q,"rev":%d}`, r.id, r.org, r.state, r.rev)
}

// isPlain reports whether the upstream says that the records of a revision are plain.
func isPlain(rev int) bool { return rev%2 == 0 }

// asDocument appends the document made of a record.
func asDocument(dst []byte, rec core.Record) []byte {
	body := rec.Body
	dst = append(dst, `{"repositories":[{"code":"song"}],`...)
	return append(dst, body[1:]...)
}

func (r record) document() string {
	return string(asDocument(nil, core.Record{Body: []byte(r.body())}))
}

// upstream is a scripted repository: an ordered list of records per organization that may change at any time.
type upstream struct {
	latency time.Duration
	// rowLatency is how long each row of a page takes in addition.
	rowLatency time.Duration
	// nonOverlapping makes pages begin at multiples of their size, and return no total past the end, as Lyric's do; a record
	// is then found under any organization, and names its own.
	nonOverlapping bool
	// onPage, onRecord and onList, when set, are called at the start of a call and may refuse it, wait, or change the
	// list.
	onPage   func(ctx context.Context, c pageCall) error
	onRecord func(ctx context.Context, org, id string) error
	onList   func() error
	// afterRecord, when set, is called after a record was read and before it is returned.
	afterRecord func(ctx context.Context, org, id string)
	// answer, when set, changes the record that Record returns.
	answer func(record) record
	// listsUnpublished makes pages contain records that are not published.
	listsUnpublished bool
	// unlisted is a record that no list contains, and that Record returns.
	unlisted string
	// stuck, when set, may make a page start at another row, with a total of a billion rows.
	stuck func(c pageCall) (row int, is bool)
	// says, when set, changes the total of a page.
	says func(c pageCall, total int) int
	// release, when set, is called for each body that Record returns, and what it returns is the record's Release.
	release func() func()
	// limit is the size of the largest body that is returned, 0 for any.
	limit int
	// cut returns after how many rows a page breaks off, -1 for never.
	cut func(c pageCall) int

	mu        sync.Mutex
	orgs      []string
	lists     map[string][]record
	pages     []pageCall
	requested map[string]int
	since     map[string]time.Time // start of the call that last returned it
	listed    int
}

// pageCall is one call of Page: the n-th, from 1.
type pageCall struct {
	n             int
	org           string
	offset, limit int
}

func newUpstream() *upstream {
	return &upstream{latency: time.Millisecond, lists: map[string][]record{}, requested: map[string]int{}, since: map[string]time.Time{}}
}

// fill adds an organization with n published records.
func (u *upstream) fill(org string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.orgs = append(u.orgs, org)
	u.lists[org] = make([]record, 0, n)
	for i := range n {
		u.lists[org] = append(u.lists[org], record{id: fmt.Sprintf("%s-%04d", org, i), org: org, state: published})
	}
}

// change edits an organization's list.
func (u *upstream) change(org string, edit func([]record) []record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lists[org] = edit(slices.Clone(u.lists[org]))
}

// drop removes the rows [from, to) of an organization.
func (u *upstream) drop(org string, from, to int) {
	u.change(org, func(l []record) []record { return slices.Delete(l, from, to) })
}

// edit changes one record.
func (u *upstream) edit(org, id string, change func(*record)) {
	u.change(org, func(l []record) []record {
		for i := range l {
			if l[i].id == id {
				change(&l[i])
			}
		}
		return l
	})
}

// move makes a record another organization's, at the end of its list.
func (u *upstream) move(id, to string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for org, list := range u.lists {
		if i := slices.IndexFunc(list, func(r record) bool { return r.id == id }); i >= 0 {
			r := list[i]
			u.lists[org] = slices.Delete(slices.Clone(list), i, i+1)
			r.org = to
			u.lists[to] = append(slices.Clone(u.lists[to]), r)
			return
		}
	}
}

// vanish removes an organization.
func (u *upstream) vanish(org string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.orgs = slices.DeleteFunc(u.orgs, func(o string) bool { return o == org })
	delete(u.lists, org)
}

func (u *upstream) Organizations(context.Context) ([]string, error) {
	if u.onList != nil {
		if err := u.onList(); err != nil {
			return nil, err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listed++
	return slices.Clone(u.orgs), nil
}

func (u *upstream) Page(ctx context.Context, org string, offset, limit int, each func(core.Record) error) (core.PageInfo, error) {
	u.mu.Lock()
	call := pageCall{n: len(u.pages) + 1, org: org, offset: offset, limit: limit}
	u.pages = append(u.pages, call)
	u.mu.Unlock()
	began := time.Now()
	if u.onPage != nil {
		if err := u.onPage(ctx, call); err != nil {
			return core.PageInfo{}, err
		}
	}
	u.mu.Lock()
	list, known := u.lists[org]
	u.mu.Unlock()
	if !known && !u.nonOverlapping {
		return core.PageInfo{}, core.WrapError(core.CodeAbsent, "the repository has no such study", core.ErrOrganizationAbsent)
	}
	if u.nonOverlapping && offset%limit != 0 {
		return core.PageInfo{}, core.NewError(core.CodeInvalid, "a page begins at a multiple of its size")
	}
	time.Sleep(u.latency)
	rows := slices.DeleteFunc(slices.Clone(list), func(r record) bool { return r.state != published && !u.listsUnpublished })
	info := core.PageInfo{Total: len(rows)}
	if u.stuck != nil {
		if row, is := u.stuck(call); is {
			offset, info.Total = row, 1_000_000_000
		}
	}
	rows = rows[min(offset, len(rows)):min(offset+limit, len(rows))]
	info.Rows = len(rows)
	if u.nonOverlapping && info.Rows == 0 {
		info.Total = 0
	}
	if u.says != nil {
		info.Total = u.says(call, info.Total)
	}
	cut := -1
	if u.cut != nil {
		cut = u.cut(call)
	}
	var buffer []byte
	for i, r := range rows {
		if i == cut {
			return core.PageInfo{}, core.NewError(core.CodeUnavailable, "the page was cut short")
		}
		time.Sleep(u.rowLatency)
		u.returned(r.id, began)
		buffer = append(buffer[:0], r.body()...)
		err := each(u.limited(core.Record{ID: r.id, Organization: r.org, State: r.state, Indexable: r.state == published, Body: buffer, Plain: isPlain(r.rev)}))
		for j := range buffer {
			buffer[j] = '!' // a body ends with its callback
		}
		if err != nil {
			return core.PageInfo{}, err
		}
	}
	return info, ctx.Err()
}

func (u *upstream) Record(ctx context.Context, org, id string) (core.Record, error) {
	u.mu.Lock()
	u.requested[id]++
	u.mu.Unlock()
	u.returned(id, time.Now())
	if u.onRecord != nil {
		if err := u.onRecord(ctx, org, id); err != nil {
			return core.Record{}, err
		}
	}
	r, err := u.find(org, id)
	time.Sleep(u.latency)
	if u.afterRecord != nil {
		u.afterRecord(ctx, org, id)
	}
	if err != nil {
		return core.Record{}, err
	}
	if u.answer != nil {
		r = u.answer(r)
	}
	rec := core.Record{ID: r.id, Organization: r.org, State: r.state, Indexable: r.state == published, Body: []byte(r.body()), Plain: isPlain(r.rev)}
	if u.release != nil {
		rec.Release = u.release()
	}
	return u.limited(rec), ctx.Err()
}

// limited returns a record without its body when that is over the limit.
func (u *upstream) limited(rec core.Record) core.Record {
	if u.limit > 0 && len(rec.Body) > u.limit {
		rec.TooLarge, rec.Body = core.NewDeadLetterDocument(rec.Body), nil
	}
	return rec
}

func (u *upstream) find(org, id string) (record, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if id == u.unlisted {
		return record{id: id, org: org, state: published}, nil
	}
	list, known := u.lists[org]
	if u.nonOverlapping { // Lyric finds records without an organization
		list = slices.Concat(slices.Collect(maps.Values(u.lists))...)
	} else if !known {
		return record{}, core.WrapError(core.CodeAbsent, "the repository has no such study", core.ErrOrganizationAbsent)
	}
	for _, r := range list {
		if r.id == id {
			return r, nil
		}
	}
	for _, list := range u.lists {
		if slices.ContainsFunc(list, func(r record) bool { return r.id == id }) {
			return record{}, core.WrapError(core.CodeUpstream, "the record is another study's", core.ErrOtherOrganization)
		}
	}
	return record{}, core.WrapError(core.CodeAbsent, "the repository has no such record", core.ErrRecordAbsent)
}

// model returns the documents that the index should hold.
func (u *upstream) model() map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	want := map[string]string{}
	for org, list := range u.lists {
		for _, r := range list {
			if r.state == published && r.org == org && core.ValidKey("id", r.id) == nil {
				want[r.id] = r.document()
			}
		}
	}
	return want
}

func (u *upstream) pageCalls() []pageCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.pages)
}

func (u *upstream) returned(id string, began time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since[id] = began
}

// requestedAt returns the start of the call that last returned a record.
func (u *upstream) requestedAt(id string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.since[id]
}

// requestsFor returns how often a record was requested by itself, or all records when id is empty.
func (u *upstream) requestsFor(id string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if id != "" {
		return u.requested[id]
	}
	n := 0
	for _, k := range u.requested {
		n += k
	}
	return n
}

// mostRequests returns the highest number of requests for one record by itself.
func (u *upstream) mostRequests() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	most := 0
	for _, k := range u.requested {
		most = max(most, k)
	}
	return most
}
