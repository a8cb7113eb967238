package queue_test

import (
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/subjects"
)

func TestForeignCursors(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		mustPut(t, q, letter("S1", "A1", core.ReasonRejected), letter("S1", "A2", core.ReasonRejected))
		createJob(t, q, "J1")
		createJob(t, q, "J2")
		lists := map[string]func(limit int, cursor string) (string, error){
			"letters": func(limit int, cursor string) (string, error) {
				_, next, err := q.DeadLetters().List(t.Context(), core.DeadLetterFilter{Limit: limit, Cursor: cursor})
				return next, err
			},
			"jobs": func(limit int, cursor string) (string, error) {
				_, next, err := q.Jobs().List(t.Context(), core.JobFilter{Limit: limit, Cursor: cursor})
				return next, err
			},
		}
		cursors := map[string]string{}
		for name, list := range lists {
			next, err := list(1, "")
			if err != nil || next == "" {
				t.Fatalf("%s: cursor %q, %v", name, next, err)
			}
			cursors[name] = next
			if last, err := list(1, next); err != nil || last != "" {
				t.Errorf("%s: the second page ends with %q, %v", name, last, err)
			}
		}
		for name, list := range lists {
			bad := map[string]string{
				"short": "0", "a number": "12", "a word": "nonsense", "a token": subjects.EncodeToken("0199b2a7-3c2f-7a01-9d7e-0d2f6c1f7a10"),
				"not of the alphabet": "!", "another list": cursors["jobs"], "longer": cursors[name] + "AAAA",
				"without its end": cursors[name][:len(cursors[name])-2],
			}
			if name == "jobs" {
				bad["another list"] = cursors["letters"]
			}
			for fault, cursor := range bad {
				t.Run(name+"/"+fault, func(t *testing.T) {
					_, err := list(1, cursor)
					if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != "the cursor is not one of this list" ||
						core.HintOf(err) != "use the cursor returned with the previous page, or omit it to start with the first page" {
						t.Errorf("got %v", err)
					}
				})
			}
		}
	})
}

// createJob stores a running job.
func createJob(t *testing.T, q *queue.Queue, id string) core.Job {
	t.Helper()
	job := core.Job{ID: id, Scope: core.ScopeRepository, Repository: "song", State: core.JobRunning}
	if err := q.Jobs().Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	return job
}
