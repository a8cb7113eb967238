package queue_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/queue"
)

// TestSweptNotes: what a sweep notes is added to what it had noted, by step, organization and job, until the job's notes are forgotten.
func TestSweptNotes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		notes := q.PageNotes()
		many := make([]string, 2500)
		for i := range many {
			many[i] = fmt.Sprintf("%05d", i)
		}
		note := func(job, organization string, step int, ids ...string) {
			t.Helper()
			if err := notes.NoteSwept(t.Context(), job, organization, step, ids); err != nil {
				t.Fatal(err)
			}
		}
		want := func(job, organization string, step int, want map[string][]string) {
			t.Helper()
			got, err := notes.Swept(t.Context(), job, organization, step)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s of %s, step %d: %v %s", job, organization, step, err, diff)
			}
		}
		note("job", "S.1", 0, "b.*>\n", "a")
		note("job", "S.1", 0, "a", "c")
		note("job", "S.1", 1, "d")
		note("job", "S", 0, many...)
		note("job", "S", 0)
		note("job2", "S", 0, "e")
		all := map[string][]string{"S.1": {"a", "b.*>\n", "c"}, "S": many}
		want("job", "", 0, all)
		want("job", "S.1", 0, map[string][]string{"S.1": all["S.1"]})
		want("job", "S.1", 1, map[string][]string{"S.1": {"d"}})
		want("job", "none", 0, map[string][]string{})
		if late, err := notes.RequestedIDs(t.Context(), "job", "S", map[int]int{0: 0}); err != nil || len(late) > 0 {
			t.Errorf("late records %q, %v", late, err)
		}
		if err := notes.ForgetPages(t.Context(), "job", "S.1"); err != nil {
			t.Fatal(err)
		}
		want("job", "", 0, all)
		if err := notes.ForgetPages(t.Context(), "job", ""); err != nil {
			t.Fatal(err)
		}
		want("job", "", 0, map[string][]string{})
		want("job2", "", 0, map[string][]string{"S": {"e"}})
	})
}
