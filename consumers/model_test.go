package consumers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tutti/internal/core"
)

// machine applies random events to a world.
type machine struct {
	*world
	live     *process
	orgs     []string
	jobs     []string
	failures atomic.Int64 // calls to the upstream that will fail
}

// TestStateMachine: whatever happens in whatever order, after one more run the index is what the upstream is.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			m := &machine{world: newWorld(rt), orgs: []string{"A", "B", "C"}}
			m.cfg.RetryMax = 20 * time.Millisecond
			m.pageSize = 5
			m.upstream.nonOverlapping = rapid.Bool().Draw(rt, "disjoint")
			m.upstream.onPage = func(context.Context, pageCall) error { return m.fail() }
			m.upstream.onRecord = func(context.Context, string, string) error { return m.fail() }
			m.upstream.onList = m.fail
			for _, org := range m.orgs {
				m.upstream.fill(org, rapid.IntRange(0, 30).Draw(rt, "size of "+org))
			}
			m.broker.clock = rapid.SampledFrom([]time.Duration{0, 100 * time.Hour}).Draw(rt, "clock")
			m.live = m.boot(-1)
			if rapid.Bool().Draw(rt, "indexed before") {
				m.ended(m.job(m.run("", false)), core.JobSucceeded, "")
			}
			rt.Repeat(map[string]func(*rapid.T){
				"create":  func(t *rapid.T) { m.create(t) },
				"change":  func(t *rapid.T) { m.change(t) },
				"trigger": func(t *rapid.T) { m.index(m.org(t), m.id(t)) },
				"remove":  func(t *rapid.T) { m.remove(m.org(t), m.id(t)) },
				"batch":   func(t *rapid.T) { m.indexAll(m.ids(t)...) },
				"run":     func(t *rapid.T) { m.begin(t) },
				"redeliver": func(t *rapid.T) {
					m.broker.redeliver(rapid.SampledFrom([]core.Class{core.ClassRecords, core.ClassBatches, core.ClassPages, core.ClassRuns}).Draw(t, "class"))
				},
				"shuffle": func(t *rapid.T) { m.shuffle(rapid.Uint64().Draw(t, "order")) },
				"crash":   func(t *rapid.T) { m.crash() },
				"restart": func(t *rapid.T) { _ = m.live.stop(m.t, time.Second); m.live = m.boot(-1) },
				"pause":   func(t *rapid.T) { m.engine.setDown(rapid.SampledFrom([]error{errBlocked, errDown}).Draw(t, "fault")) },
				"resume":  func(t *rapid.T) { m.engine.setDown(nil) },
				"fail":    func(t *rapid.T) { m.failures.Store(rapid.Int64Range(1, 6).Draw(t, "failures")) },
				"reopen":  func(t *rapid.T) { m.engine.reopen() },
				"cancel":  func(t *rapid.T) { m.cancel(t) },
				"vanish":  func(t *rapid.T) { m.vanish(t) },
				"move":    func(t *rapid.T) { m.move(t) },
				// by more than the duration of the test, so that earlier versions stay in the future
				"set back": func(t *rapid.T) { m.broker.setBack(time.Duration(rapid.IntRange(1, 3).Draw(t, "hours")) * time.Hour) },
				"wait":     func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) },
			})
			m.finish()
		})
	})
}

// fail uses up one of the failures that are left.
func (m *machine) fail() error {
	if m.failures.Add(-1) >= 0 {
		return unavailable("the repository answered 500")
	}
	return nil
}

func (m *machine) org(t *rapid.T) string { return rapid.SampledFrom(m.orgs).Draw(t, "organization") }

// id draws the id of a record that exists, or may have existed, in any organization.
func (m *machine) id(t *rapid.T) string {
	return fmt.Sprintf("%s-%04d", m.org(t), rapid.IntRange(0, 40).Draw(t, "number"))
}

// ids draws the ids of several records.
func (m *machine) ids(t *rapid.T) []string {
	ids := make([]string, rapid.IntRange(1, 20).Draw(t, "records"))
	for i := range ids {
		ids[i] = m.id(t)
	}
	return ids
}

func (m *machine) create(t *rapid.T) {
	id := m.id(t)
	org := id[:1]
	at, told := rapid.IntRange(0, 30).Draw(t, "place"), rapid.Bool().Draw(t, "told")
	m.upstream.mu.Lock()
	taken := false
	for _, list := range m.upstream.lists {
		taken = taken || slices.ContainsFunc(list, func(r record) bool { return r.id == id })
	}
	_, known := m.upstream.lists[org]
	m.upstream.mu.Unlock()
	if taken || !known {
		return
	}
	m.fresh++
	m.upstream.change(org, func(l []record) []record {
		return slices.Insert(l, min(at, len(l)), record{id: id, org: org, state: published, rev: 1000 * m.fresh})
	})
	if told {
		m.index(org, id)
	}
}

func (m *machine) change(t *rapid.T) {
	org, at, told := m.org(t), rapid.IntRange(0, 30).Draw(t, "place"), rapid.Bool().Draw(t, "told")
	what := rapid.SampledFrom([]string{"update", "delete", "unpublish", "publish"}).Draw(t, "what")
	m.upstream.mu.Lock()
	n := len(m.upstream.lists[org])
	m.upstream.mu.Unlock()
	if at >= n {
		return
	}
	var id string
	m.upstream.change(org, func(l []record) []record {
		id = l[at].id
		switch what {
		case "update":
			l[at].rev++
		case "delete":
			return slices.Delete(l, at, at+1)
		case "unpublish":
			l[at].state = "UNPUBLISHED"
		default:
			l[at].state = published
		}
		return l
	})
	if told {
		m.index(org, id)
	}
}

// move makes a record another organization's, and may unpublish it there.
func (m *machine) move(t *rapid.T) {
	from, to, at := m.org(t), m.org(t), rapid.IntRange(0, 30).Draw(t, "place")
	hide, told := rapid.Bool().Draw(t, "unpublish"), rapid.Bool().Draw(t, "told")
	m.upstream.mu.Lock()
	list := m.upstream.lists[from]
	_, known := m.upstream.lists[to]
	m.upstream.mu.Unlock()
	if !known || len(list) == 0 {
		return
	}
	id := list[at%len(list)].id
	m.upstream.move(id, to)
	if hide {
		unpublish(m.world, to, id)
	}
	if told {
		m.index(to, id)
	}
}

func (m *machine) begin(t *rapid.T) {
	org := rapid.SampledFrom([]string{"", "A", "B", "C"}).Draw(t, "scope")
	m.jobs = append(m.jobs, m.run(org, rapid.Bool().Draw(t, "force")))
}

func (m *machine) shuffle(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	m.broker.mu.Lock()
	defer m.broker.mu.Unlock()
	m.broker.shuffle = func(e []*entry) { r.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] }) }
}

func (m *machine) crash() {
	m.live.crash()
	_ = m.live.stop(m.t, 0)
	m.live = m.boot(-1)
}

func (m *machine) cancel(t *rapid.T) {
	if len(m.jobs) > 0 {
		_, err := m.live.c.Cancel(context.Background(), rapid.SampledFrom(m.jobs).Draw(t, "job"))
		if code := core.CodeOf(err); err != nil && code != core.CodeConflict && code != core.CodeNotFound {
			t.Error(err)
		}
	}
}

// vanish removes an organization, or restores it without records.
func (m *machine) vanish(t *rapid.T) {
	org := m.org(t)
	m.upstream.mu.Lock()
	_, known := m.upstream.lists[org]
	m.upstream.mu.Unlock()
	if known {
		m.upstream.vanish(org)
	} else {
		m.upstream.fill(org, 0)
	}
}

func (m *machine) finish() {
	m.t.Helper()
	m.engine.setDown(nil)
	m.failures.Store(0)
	m.idle()
	for _, id := range m.jobs {
		if job, err := m.store.job(id); err != nil || !job.State.Final() {
			m.t.Errorf("%s is left as %s (%v)", id, job.State, err)
		}
	}
	m.ended(m.job(m.run("", true)), core.JobSucceeded, "")
	m.verify()
	if letters := m.store.dead(); len(letters) > 0 {
		m.t.Errorf("dead letters: %v", letters)
	}
	if n := m.live.c.InFlight(); n > 0 {
		eventually(m.t, "nothing in hand", func() bool { return m.live.c.InFlight() == 0 })
	}
	_ = m.live.stop(m.t, time.Minute)
}
