//go:build services

package app_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/core"
	"tutti/internal/tools/storetest"
)

// TestAdviceOfMovesToPostgres: after a move that was interrupted when its rows were copied, tutti goes on in its data folder, and the next move
// is refused. Each of the ways out that the log and the error name leads to a tutti on the servers that has all analyses.
func TestAdviceOfMovesToPostgres(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(t *testing.T, database string, again func()) string{
		"the database is emptied":       func(_ *testing.T, database string, again func()) string { again(); return database },
		"another database":              func(t *testing.T, _ string, _ func()) string { other, _ := storetest.PostgresDatabase(t); return other },
		"another schema by search_path": func(t *testing.T, _ string, _ func()) string { return storetest.PostgresURL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, source, target := newMove(t)
			database, again := storetest.PostgresDatabase(t)
			schema := mustParseMove(t, target).Store.URL.Reveal()
			target = strings.Replace(target, schema, database, 1)
			b.startReady()
			b.prepareStudies("S1")
			b.publish("S1", b.submit("S1"))
			b.publish("S1", b.submit("S1"))
			b.stop()
			move := func(ctx context.Context, progress func(string)) error {
				_, err := storage.Move(ctx, mustParseMove(t, source), mustParseMove(t, target), slog.New(slog.DiscardHandler), progress)
				return err
			}
			interrupted, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			if err := move(interrupted, func(line string) {
				if strings.HasPrefix(line, "the store has all ") {
					interrupt()
				}
			}); err == nil {
				t.Fatal("the move was not interrupted")
			}
			// A process that is killed leaves the file.
			if err := os.WriteFile(filepath.Join(b.dir, ".moving"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			b.startReady()
			if !slices.ContainsFunc(b.logs.all(), func(line string) bool {
				return strings.Contains(line, "To repeat tutti move later, empty the database of store.url first")
			}) {
				t.Error("the log does not say how the move can be repeated")
			}
			b.publish("S1", b.submit("S1"))
			b.stop()
			wantHint(t, move(t.Context(), func(string) {}), core.CodeConflict, "name an empty database in store.url, or an empty schema by search_path")
			target = strings.Replace(target, database, empty(t, database, again), 1)
			if err := move(t.Context(), func(string) {}); err != nil {
				t.Fatal(err, core.HintOf(err))
			}
			b.set.configuration = func(*world) string { return target }
			b.dropAtEnd(b.alias + "-song")
			b.startReady()
			b.awaitConverged()
			if n := len(b.storedAnalyses("PUBLISHED")); n != 3 {
				t.Errorf("%d analyses after the move", n)
			}
		})
	}
}

// dump copies a database into another one, which is empty, with the tools that messages about backups of PostgreSQL name.
func dump(t *testing.T, from, to string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dump")
	for _, command := range [][]string{
		{"pg_dump", "--format=custom", "--file=" + file, from},
		{"pg_restore", "--exit-on-error", "--dbname=" + to, file},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[0], err, out)
		}
	}
}

// TestAdviceOfBackupsOfPostgres: a backup of a tutti with its store on PostgreSQL, together with what pg_dump and pg_restore do for the store, has
// all analyses. Where nothing is embedded, a backup is refused; its index can be written again from the store that was restored.
func TestAdviceOfBackupsOfPostgres(t *testing.T) {
	t.Parallel()
	for name, external := range map[string]bool{"the store": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, _ := storetest.PostgresDatabase(t)
			to, _ := storetest.PostgresDatabase(t)
			b := newBuiltIn(t, plan{})
			configuration := func(w *world, store string) string {
				text := plan{store: store}.yaml(w)
				if !external {
					text = strings.Replace(text, fmt.Sprintf("index: {url: %q", b.engine.url()), `index: {url: ""`, 1)
				}
				return text
			}
			b.set.configuration = func(w *world) string { return configuration(w, from) }
			if external {
				b.set.queueURL = externalQueue(t)
			}
			b.startReady()
			b.prepareStudies("S1")
			for range 3 {
				b.publish("S1", b.submit("S1"))
			}
			want := b.storedAnalyses("PUBLISHED")
			restored := *b.world
			restored.dir = filepath.Join(t.TempDir(), "restored")
			restored.set.configuration = func(w *world) string { return configuration(w, to) }
			if external {
				a := b.mustSend(http.MethodGet, "/backup", "", http.StatusConflict)
				if hint := a.get("hint").String(); hint != "use pg_dump, nats stream backup, and snapshots of Elasticsearch or OpenSearch" {
					t.Errorf("the hint is %q", hint)
				}
				dump(t, from, to)
				restored.set.queueURL = externalQueue(t)
				restored.alias += "-restored"
				b.dropAtEnd(restored.alias)
			} else {
				dir := filepath.Join(t.TempDir(), "backup")
				m, err := backup.Unpack(bytes.NewReader(b.mustSend(http.MethodGet, "/backup", "", http.StatusOK).raw), dir)
				if err != nil || !slices.Equal(m.NotIncluded, []string{backup.PartStore}) {
					t.Fatalf("the backup: %+v, %v", m, err)
				}
				dump(t, from, to)
				if _, err := storage.Restore(t.Context(), mustParseMove(t, restored.yaml()), slog.New(slog.DiscardHandler), dir); err != nil {
					t.Fatal(err, core.HintOf(err))
				}
			}
			b.stop()
			after := &builtIn{world: &restored}
			after.startReady()
			if external {
				after.mustSend(http.MethodPost, "/index/repository/"+builtInCode, "", http.StatusAccepted)
			}
			if diff := difference(want, after.storedAnalyses("PUBLISHED")); diff != "" {
				t.Error(diff)
			}
			after.eventually(wait, func() (bool, string) {
				missing := 0
				for id := range want {
					if _, is, _ := after.app.Index().Get(t.Context(), after.alias, id); !is {
						missing++
					}
				}
				return missing == 0, fmt.Sprint(missing, " analyses are missing in the index")
			})
		})
	}
}
