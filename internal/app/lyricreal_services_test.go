//go:build services

package app_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// clinicDictionary is the dictionary of realLyric's category.
const clinicDictionary = `{"_id":"clinic-1","name":"clinic","version":"1.0","createdAt":"2026-01-01T00:00:00.000Z","schemas":[
	{"name":"donor","fields":[{"name":"donor_id","valueType":"string","unique":true},{"name":"age","valueType":"integer"}]},
	{"name":"specimen","restrictions":{"foreignKey":[{"schema":"donor","mappings":[{"local":"donor_id","foreign":"donor_id"}]}]},
	 "fields":[{"name":"donor_id","valueType":"string"},{"name":"specimen_id","valueType":"string","unique":true},{"name":"volume","valueType":"number"}]},
	{"name":"sample","restrictions":{"foreignKey":[{"schema":"specimen","mappings":[{"local":"specimen_id","foreign":"specimen_id"}]}]},
	 "fields":[{"name":"specimen_id","valueType":"string"},{"name":"sample_id","valueType":"string","unique":true},{"name":"depth","valueType":"integer"}]}]}`

// realLyric is a Lyric with a database and a topic of its own, behind an address that stays while it is stopped.
type realLyric struct {
	*testing.T

	url     string // what tutti reads
	topic   string
	lectern *testkit.LecternServer
	brokers string
	client  *http.Client
	stop    func()
	target  atomic.Pointer[http.Handler]
	// before, when set, is called before a request is passed on.
	before atomic.Pointer[func(*http.Request)]
}

// newRealLyric returns a Lyric that is not started.
func newRealLyric(t *testing.T, name string) *realLyric {
	t.Helper()
	l := &realLyric{T: t, topic: name + "-lyric", brokers: os.Getenv("TUTTI_TEST_KAFKA_BROKERS"), client: &http.Client{Transport: &http.Transport{}}, stop: func() {}}
	if l.brokers == "" || os.Getenv("TUTTI_TEST_LYRIC") == "" {
		t.Fatal("TUTTI_TEST_KAFKA_BROKERS and TUTTI_TEST_LYRIC are not set; deploy/local/kafka/start and deploy/local/lyric/start print them")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(l.brokers, ",")...))
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(client)
	t.Cleanup(admin.Close)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, l.topic); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.DeleteTopic(context.WithoutCancel(t.Context()), l.topic); err != nil {
			t.Errorf("deleting the topic: %v", err)
		}
	})
	if l.lectern, err = testkit.NewLectern(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.lectern.Close)
	l.lectern.Add(clinicDictionary)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := l.before.Load(); before != nil {
			(*before)(r)
		}
		(*l.target.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { l.stop(); front.Close(); l.client.CloseIdleConnections() })
	l.url = front.URL
	return l
}

// start starts Lyric on a database, with plural names of nested collections or not.
func (l *realLyric) start(database string, plural bool) {
	l.Helper()
	db, err := url.Parse(database)
	if err != nil {
		l.Fatal(err)
	}
	password, _ := db.User.Password()
	log, err := os.Create(filepath.Join(l.TempDir(), "lyric.log"))
	if err != nil {
		l.Fatal(err)
	}
	node := exec.Command("node", os.Getenv("TUTTI_TEST_LYRIC"))
	node.Env = append(os.Environ(), "PG_HOST="+db.Hostname(), "PG_PORT="+db.Port(), "PG_DATABASE="+strings.TrimPrefix(db.Path, "/"),
		"PG_USER="+db.User.Username(), "PG_PASSWORD="+password, "LECTERN_URL="+l.lectern.URL(), "KAFKA_BROKERS="+l.brokers,
		"KAFKA_TOPIC="+l.topic, fmt.Sprint("PLURALIZE=", plural))
	node.Stderr = log
	stdin, err := node.StdinPipe()
	if err != nil {
		l.Fatal(err)
	}
	stdout, err := node.StdoutPipe()
	if err != nil {
		l.Fatal(err)
	}
	if err := node.Start(); err != nil {
		l.Fatal(err)
	}
	serves, drained := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(drained)
		defer close(serves)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if address, ok := strings.CutPrefix(lines.Text(), "LYRIC="); ok {
				serves <- address
			}
		}
	}()
	calls := &http.Transport{}
	l.stop = func() {
		_ = stdin.Close() // it ends
		<-drained
		_ = node.Wait()
		calls.CloseIdleConnections()
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); l.Failed() && err == nil {
			l.Logf("Lyric:\n%s", said)
		}
		l.stop = func() {}
	}
	target, err := url.Parse(<-serves)
	if err != nil || target.Host == "" {
		l.stop()
		l.Fatal("Lyric did not start")
	}
	handler := forwardTo(target, calls)
	l.target.Store(&handler)
}

// try sends a request to Lyric.
func (l *realLyric) try(method, path, body string) (status int, answer gjson.Result) {
	l.Helper()
	req, err := http.NewRequestWithContext(l.Context(), method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.Fatal(err)
	}
	return resp.StatusCode, gjson.ParseBytes(text)
}

// call is try for a request that succeeds.
func (l *realLyric) call(method, path, body string) gjson.Result {
	l.Helper()
	status, answer := l.try(method, path, body)
	if status != http.StatusOK {
		l.Fatalf("%s %s: %d %s", method, path, status, answer.Raw)
	}
	return answer
}

// change is one request that adds to a submission.
type change struct{ method, path, body string }

// insertion adds records of an entity of an organization.
func insertion(organization, entity string, records ...string) change {
	return change{http.MethodPost, "data?organization=" + url.QueryEscape(organization) + "&entityName=" + entity, "[" + strings.Join(records, ",") + "]"}
}

// edit replaces the data of a record.
func edit(r gjson.Result, data string) change {
	return change{
		http.MethodPut, "data?organization=" + url.QueryEscape(r.Get("organization").String()) + "&entityName=" + r.Get("entityName").String(),
		fmt.Sprintf(`[{"systemId":%q,%s}]`, r.Get("systemId").String(), data),
	}
}

// deletion removes a record, with those that refer to it.
func deletion(r gjson.Result) change {
	return change{http.MethodDelete, "data/" + r.Get("systemId").String(), ""}
}

// commit submits changes of one organization, and commits them.
func (l *realLyric) commit(changes ...change) {
	l.Helper()
	var id string
	read := func() gjson.Result { return l.call(http.MethodGet, "/submission/"+id, "") }
	total := 0
	for _, c := range changes {
		answer := l.call(c.method, "/submission/category/1/"+c.path, c.body)
		if id = answer.Get("submissionId").String(); id == "" {
			l.Fatalf("%s %s: %s", c.method, c.path, answer.Raw)
		}
		// Its change is stored, with another state, after the answer. It takes nothing while it is validated, and is not valid without the
		// records of later changes.
		eventually(l.T, wait, func() (bool, string) {
			submission := read()
			if n := int(submission.Get("data.total").Int()); n > total && submission.Get("status").String() != "VALIDATING" {
				total = n
				return true, ""
			}
			return false, submission.Raw
		})
	}
	l.call(http.MethodPost, "/submission/category/1/commit/"+id, "")
	eventually(l.T, wait, func() (bool, string) {
		submission := read()
		if state := submission.Get("status").String(); state != "COMMITTING" && state != "COMMITTED" {
			l.Fatalf("a commit ended %s: %s", state, submission.Raw)
		}
		return submission.Get("status").String() == "COMMITTED", submission.Raw
	})
}

// addDonors commits donors with one specimen and one sample each.
func (l *realLyric) addDonors(organization string, from, to int) {
	l.Helper()
	var donors, specimens, samples []string
	for n := from; n < to; n++ {
		donors = append(donors, fmt.Sprintf(`{"donor_id":"%s%d","age":"%d"}`, organization, n, 20+n))
		specimens = append(specimens, fmt.Sprintf(`{"donor_id":"%s%d","specimen_id":"S%[1]s%[2]d","volume":"%[2]d.5"}`, organization, n))
		samples = append(samples, fmt.Sprintf(`{"specimen_id":"S%s%d","sample_id":"A%[1]s%[2]d","depth":"%[2]d"}`, organization, n))
	}
	l.commit(insertion(organization, "donor", donors...), insertion(organization, "specimen", specimens...), insertion(organization, "sample", samples...))
}

// list returns the records of an entity that an organization has, in Lyric's order.
func (l *realLyric) list(organization, entity string) []gjson.Result {
	l.Helper()
	status, page := l.try(http.MethodGet, "/data/category/1/organization/"+url.PathEscape(organization)+"?pageSize=1000&entityName="+entity, "")
	if status == http.StatusNotFound {
		return nil
	}
	return page.Get("records").Array()
}

// records returns the records of all donors by id, as the compound list has them, in canonical form.
func (l *realLyric) records() map[string]string {
	l.Helper()
	all := map[string]string{}
	for _, record := range l.call(http.MethodGet, "/data/category/1?view=compound&pageSize=1000", "").Get("records").Array() {
		all[record.Get("systemId").String()] = canonical(l.T, record.Raw)
	}
	return all
}

// canonical returns a JSON text with its members in the order of their names, and arrays of objects in the order of their texts: Lyric selects
// nested records without an order.
func canonical(t *testing.T, text string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	encode := func(value any) string {
		encoded, fault := json.Marshal(value)
		err = errors.Join(err, fault)
		return string(encoded)
	}
	var sort func(any)
	sort = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, member := range value {
				sort(member)
			}
		case []any:
			for _, element := range value {
				sort(element)
			}
			if len(value) > 0 {
				if _, object := value[0].(map[string]any); object {
					slices.SortFunc(value, func(a, b any) int { return cmp.Compare(encode(a), encode(b)) })
				}
			}
		}
	}
	sort(value)
	out := encode(value)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// ofLyric is a world whose repository is a real Lyric.
type ofLyric struct {
	*world

	lyric *realLyric
}

// documents returns all documents by id, in canonical form.
func (w ofLyric) documents() map[string]string {
	w.t.Helper()
	got := w.storedRecords(w.alias, map[string]string{
		"code": code, "name": "Test repository", "organization": "Example Institute", "country": "CA", "url": w.lyric.url, "type": "lyric",
	})
	for id, text := range got {
		got[id] = canonical(w.t, text)
	}
	return got
}

// awaitSame waits until the index holds exactly the donors that Lyric has. Ids in except are ignored.
func (w ofLyric) awaitSame(except ...string) {
	w.t.Helper()
	want := w.lyric.records()
	w.eventually(wait, func() (bool, string) {
		fault := difference(want, w.documents(), except...)
		return fault == "", fault
	})
}

// deleteAmid runs, and deletes two of the first page's donors of an organization before the second page is read. They are in the index until the
// next run, if at all.
func (w ofLyric) deleteAmid(organization, query string) {
	w.t.Helper()
	donors := w.lyric.list(organization, "donor")
	reached, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	before := func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/organization/"+organization) && r.URL.Query().Get("page") == "2" && !once.Swap(true) {
			close(reached)
			<-release
		}
	}
	w.lyric.before.Store(&before)
	job := w.startRun("", query)
	<-reached
	w.lyric.before.Store(nil)
	w.lyric.commit(deletion(donors[1]), deletion(donors[4]))
	close(release)
	if job := w.awaitJob(job); job.Get("state").String() != string(core.JobSucceeded) {
		w.t.Errorf("%s: %s", query, job.Raw)
	}
	w.awaitSame(donors[1].Get("systemId").String(), donors[4].Get("systemId").String())
}

// configure sets tutti's configuration for the next start; more is YAML of the repository.
func (w ofLyric) configure(more string) {
	plain := *w.world
	plain.set.configuration = nil
	plain.set.repository = fmt.Sprintf("lyric: {categoryId: 1, dictionaryUrl: %q}\n%s", w.lyric.lectern.URL(), more)
	text := strings.Replace(plain.yaml(), fmt.Sprintf("type: song\n    url: %q", w.song.URL()), fmt.Sprintf("type: lyric\n    url: %q", w.lyric.url), 1)
	w.set.configuration = func(*world) string { return text }
}

// wantChecked fails the test unless tutti check finds the repository and its topic right.
func (w ofLyric) wantChecked() {
	w.t.Helper()
	cfg, err := config.Parse([]byte(w.yaml()), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var found []string
	for _, f := range check.Run(w.t.Context(), cfg, check.Options{}).Findings {
		if strings.Contains(f.Subject, code) {
			found = append(found, fmt.Sprintf("%s: %s: %s", f.Subject, f.Status, f.Message))
		}
	}
	want := []string{"repository * lists 2 organizations in ", "repository * declares the types of 14 fields", "notifications of * topic " + w.lyric.topic + " with 1 partition"}
	if !slices.EqualFunc(want, found, func(want, found string) bool {
		subject, says, _ := strings.Cut(want, "*")
		return strings.HasPrefix(found, subject+code+": ok: ") && strings.Contains(found, says)
	}) {
		w.t.Errorf("the check found %q", found)
	}
}

// first returns the first record of an entity that an organization has.
func (w ofLyric) first(organization, entity string) gjson.Result {
	w.t.Helper()
	return w.lyric.list(organization, entity)[0]
}

// notified: what Lyric publishes is indexed without a run, where foreign keys lead to a donor.
func (w ofLyric) notified() {
	w.t.Helper()
	w.configure(fmt.Sprintf("notifications: {kafka: {brokers: [%q], topic: %s, group: %s}}",
		strings.ReplaceAll(w.lyric.brokers, ",", `", "`), w.lyric.topic, w.alias))
	w.start()
	w.lyric.addDonors("A", 0, 16)
	w.lyric.addDonors("B", 0, 2)
	w.awaitSame()
	for _, next := range []func() change{
		func() change { return edit(w.first("A", "donor"), `"donor_id":"A0","age":"77"`) },
		func() change {
			return edit(w.first("B", "sample"), `"specimen_id":"SB0","sample_id":"AB0","depth":"99"`)
		},
		func() change { return deletion(w.first("A", "sample")) },
	} {
		w.lyric.commit(next())
		w.awaitSame()
	}
	if jobs := w.jobs(); len(jobs) != 0 {
		w.t.Errorf("%d runs: %s", len(jobs), jobs[0].Raw)
	}
	w.lyric.commit(deletion(w.first("A", "specimen"))) // of donor A0, whose sample is gone
	w.lyric.commit(deletion(w.first("B", "donor")))    // with its specimen and its sample
	w.awaitSame()
	w.wantChecked()
	w.stop()
}

// ran: changes and deletes follow by a run.
func (w ofLyric) ran() {
	w.t.Helper()
	w.configure("")
	w.start()
	drift := func(different, surplus int64) {
		w.t.Helper()
		counted(w.t, w.run("", "?difference=true", core.JobSucceeded), map[string]int64{
			"totals.drift.different": different, "totals.drift.missing": 0, "totals.drift.surplus": surplus,
			"totals.indexed": different, "totals.removed": surplus,
		})
	}
	drift(0, 0) // though single records have their members in another order than those of a list
	w.run("", "", core.JobSucceeded)
	w.awaitSame()
	w.lyric.commit(edit(w.first("A", "specimen"), `"donor_id":"A1","specimen_id":"SA1","volume":"3.25"`), deletion(w.lyric.list("A", "donor")[5]))
	drift(1, 1)
	w.awaitSame()
}

// restored: a Lyric that comes back from a backup has 5 older states, 2 records that were deleted since, and lacks 12.
func (w ofLyric) restored(database, backup string) {
	w.t.Helper()
	dump(w.t, database, backup)
	donors := w.lyric.list("A", "donor")
	var changes []change
	for _, d := range donors[:5] {
		changes = append(changes, edit(d, fmt.Sprintf(`"donor_id":%q,"age":"99"`, d.Get("data.donor_id"))))
	}
	w.lyric.commit(append(changes, deletion(donors[7]), deletion(donors[8]))...)
	w.lyric.addDonors("A", 30, 42)
	w.run("", "", core.JobSucceeded)
	w.awaitSame()
	w.lyric.stop()
	w.lyric.start(backup, true)
	job := w.run("", "?difference=true", core.JobPartial)
	counted(w.t, job, map[string]int64{
		"totals.drift.different": 5, "totals.drift.older": 0, "totals.drift.missing": 2, "totals.drift.surplus": 12, "totals.removed": 0,
	})
	if job.Get("error.code").String() != core.JobErrorPruneGuard {
		w.t.Errorf("the job: %s", job.Raw)
	}
	w.awaitReasonOf("found 2 documents missing, 5 different and 12 surplus")
	w.awaitReasonOf("tutti index " + code + " --force")
	w.run("", "?force=true", core.JobSucceeded)
	w.awaitSame()
	w.awaitReasonOf()
}

// renamed: a Lyric with another setting returns specimens as specimen.
func (w ofLyric) renamed(database string) {
	w.t.Helper()
	w.lyric.stop()
	w.lyric.start(database, false)
	changed := 0
	for _, record := range w.lyric.records() {
		changed += strings.Count(record, `"specimen":`)
	}
	w.run("", "?difference=true", core.JobSucceeded)
	w.awaitSame()
	w.awaitReasonOf(fmt.Sprintf("found 0 documents missing, %d different and 0 surplus", changed))
	w.awaitReasonOf("no record has data.specimens any more (new: data.specimen); ", "tutti index "+code+" --rebuild")
	wantNames := func(want ...string) {
		w.t.Helper()
		mapping := w.mustRequest(http.MethodGet, "/index/repository/"+code+"/mapping", http.StatusOK)
		var names []string
		for name := range mapping.get("mapping.properties.data.properties").Map() {
			if strings.HasPrefix(name, "specimen") {
				names = append(names, name)
			}
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			w.t.Errorf("the index has %q, want %q", names, want)
		}
	}
	wantNames("specimen", "specimens")
	w.run("", "?rebuild=true", core.JobSucceeded)
	w.awaitSame()
	w.awaitReasonOf()
	wantNames("specimen")
}

// TestRealLyric: the topic, the records, deletes amid a run, a restore and a new name of a nested collection of a real Lyric lead to the outcomes
// that the guides name.
func TestRealLyric(t *testing.T) {
	t.Parallel()
	// Cleanups are in reverse order: Lyric ends before its databases.
	database, _ := storetest.PostgresDatabase(t)
	backup, _ := storetest.PostgresDatabase(t)
	w := ofLyric{world: newWorld(t, settings{pageSize: 5})}
	w.lyric = newRealLyric(t, w.alias)
	w.lyric.start(database, true)
	w.lyric.call(http.MethodPost, "/dictionary/register",
		`{"categoryName":"clinical","dictionaryName":"clinic","dictionaryVersion":"1.0","defaultCentricEntity":"donor"}`)
	w.notified()
	w.ran()
	w.lyric.addDonors("C", 0, 9) // which are not in the index yet
	for _, query := range []string{"", "?rebuild=true"} {
		w.deleteAmid("C", query)
		w.run("", "?difference=true", core.JobSucceeded)
		w.awaitSame()
	}
	w.restored(database, backup)
	w.renamed(backup)
}
