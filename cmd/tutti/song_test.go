package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// song is the repository of one script: "song start NAME=N…" makes it with N analyses in each study and sets SONG to its
// URL and, for each study, NAME_1 … to the ids; the other forms change it.
//
//	song keep STUDY N        leaves the first N analyses
//	song fail STUDY STATUS   answers the pages of a study with a status that is not retried
//	song hold STUDY          holds the pages of a study up until "song release"
//	song put STUDY FILE      puts an analysis
//	song heal                ends every failure
type song struct {
	server  *testkit.SongServer
	release chan struct{}
	once    sync.Once
}

type songKey struct{}

// songCommand is the command of the scripts.
func songCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: song start|keep|fail|hold|release|put|heal …")
	}
	if args[0] == "start" {
		startSong(ts, args[1:])
		return
	}
	s, ok := ts.Value(songKey{}).(*song)
	if !ok || s.server == nil {
		ts.Fatalf("song start comes first")
	}
	switch {
	case args[0] == "keep" && len(args) == 3:
		for _, a := range s.server.Analyses(args[1])[atoi(ts, args[2]):] {
			s.server.Delete(a.ID)
		}
	case args[0] == "fail" && len(args) == 3:
		s.server.Fail(testkit.Fault{Path: pagesOf(args[1]), Status: atoi(ts, args[2]), ContentType: "text/html", Body: "<html>no</html>"})
	case args[0] == "hold" && len(args) == 2:
		s.server.Fail(testkit.Fault{Path: pagesOf(args[1]), Release: s.release})
	case args[0] == "release" && len(args) == 1:
		s.once.Do(func() { close(s.release) })
	case args[0] == "put" && len(args) == 3:
		ts.Check(s.server.Put(args[1], []byte(ts.ReadFile(args[2]))))
	case args[0] == "heal" && len(args) == 1:
		s.server.ClearFaults()
	default:
		ts.Fatalf("song does not know %q", args)
	}
}

func pagesOf(study string) *regexp.Regexp {
	return regexp.MustCompile("/studies/" + regexp.QuoteMeta(study) + "/analysis/paginated")
}

func startSong(ts *testscript.TestScript, studies []string) {
	server, err := testkit.NewSong(testkit.SongConfig{})
	ts.Check(err)
	ts.Defer(server.Close)
	s := ts.Value(songKey{}).(*song)
	s.server = server
	for _, study := range studies {
		name, n, ok := strings.Cut(study, "=")
		if !ok {
			ts.Fatalf("%q is not NAME=N", study)
		}
		server.AddStudy(name)
		server.PutAll(dataset.GenerateAnalyses(1, name, atoi(ts, n))...)
		for i, a := range server.Analyses(name) {
			ts.Setenv(name+"_"+strconv.Itoa(i+1), a.ID)
		}
	}
	ts.Setenv("SONG", server.URL())
	ts.Check(os.WriteFile(ts.MkAbs("tutti.yaml"), []byte(strings.ReplaceAll(ts.ReadFile("tutti.yaml"), "$SONG", server.URL())), 0o600))
}

func atoi(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// member sets an environment variable to a member of the JSON on the last command's stdout: member NAME path.
func member(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: member NAME path")
	}
	stdout := ts.ReadFile("stdout")
	value := gjson.Get(stdout, args[1])
	if !value.Exists() {
		ts.Fatalf("there is no %s in %s", args[1], stdout)
	}
	ts.Setenv(args[0], value.String())
}
