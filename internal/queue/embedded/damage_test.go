package embedded_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/queue/embedded"
)

// dialer connects a client to a server of this process.
type dialer struct{ *embedded.Server }

func (d dialer) Dial(string, string) (net.Conn, error) { return d.InProcessConn() }

// stream returns the stream of a server that the tests damage, with a durable consumer.
func stream(t *testing.T, s *embedded.Server) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	conn, err := nats.Connect("nats://127.0.0.1:1", nats.SetCustomDialer(dialer{s}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "WORK", Subjects: []string{"work.>"}, Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1,
	})
	if err == nil {
		_, err = st.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "work", AckWait: 100 * time.Millisecond, MaxAckPending: -1})
	}
	if err != nil {
		t.Fatal(err)
	}
	return js, st
}

// messageBody is the body of the n-th message.
func messageBody(n int) string {
	return fmt.Sprintf("the body of message %d %s", n, bytes.Repeat([]byte("x"), n%200))
}

// filled fills a folder with n messages, the 10th to 19th of which are acknowledged, and stops the server. It returns the file of the
// messages.
func filled(t *testing.T, n int) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	s := start(t, embedded.Config{Dir: dir, SyncLater: true})
	js, st := stream(t, s)
	for i := range n {
		m := nats.NewMsg(fmt.Sprintf("work.%d", i))
		m.Data = []byte(messageBody(i))
		if i%2 == 0 {
			m.Header.Set("Key", "value")
		}
		if _, err := js.PublishMsgAsync(m); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	c, err := st.Consumer(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.Fetch(20)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for m := range batch.Messages() {
		if i >= 10 {
			if err := m.DoubleAck(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		i++
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "jetstream", "$G", "streams", "WORK", "msgs", "1.blk")
}

// readable returns the numbers of the messages that a consumer receives, whose bodies it compares.
func readable(t *testing.T, s *embedded.Server) []int {
	t.Helper()
	_, st := stream(t, s)
	var got []int
	for {
		c, err := st.Consumer(t.Context(), "work")
		if err != nil {
			t.Fatal(err)
		}
		info, err := c.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.NumPending == 0 && info.NumAckPending == 0 {
			slices.Sort(got)
			return got
		}
		batch, err := c.Fetch(100, jetstream.FetchMaxWait(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for m := range batch.Messages() {
			var n int
			if _, err := fmt.Sscanf(m.Subject(), "work.%d", &n); err != nil {
				t.Fatal(err)
			}
			if string(m.Data()) != messageBody(n) {
				t.Errorf("message %d is %q", n, m.Data())
			}
			if err := m.DoubleAck(t.Context()); err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
	}
}

// offsets returns where the records of a sound file begin, and its length.
func offsets(data []byte) []int {
	all := []int{0}
	for at := 0; at < len(data); {
		at += int(binary.LittleEndian.Uint32(data[at:]) &^ (1 << 31))
		all = append(all, at)
	}
	return all
}

// TestDamage: whatever byte of a file of messages changes, or how much of its end is missing, all messages but that one are delivered, and
// it is counted, once and for all: also by the next start if the damage was not handled, and no longer if it was.
func TestDamage(t *testing.T) {
	const messages = 60
	for _, tc := range []struct {
		name   string
		damage func(data []byte, at []int) []byte
		lost   []int
		count  int
	}{
		{"nothing", func(data []byte, _ []int) []byte { return data }, nil, 0},
		{"the body", func(data []byte, at []int) []byte { data[at[30+1]-12] ^= 4; return data }, []int{30}, 1},
		{"the headers", func(data []byte, at []int) []byte { data[at[30]+22+7+5] ^= 1; return data }, []int{30}, 1},
		{"the subject", func(data []byte, at []int) []byte { data[at[31]+22+5] ^= 1; return data }, []int{31}, 1},
		{"the length of the headers", func(data []byte, at []int) []byte { data[at[30]+22+7] ^= 1; return data }, []int{30}, 1},
		{"a longer subject", func(data []byte, at []int) []byte { data[at[31]+20] ^= 8; return data }, []int{31}, 1},
		{"the checksum", func(data []byte, at []int) []byte { data[at[32]-1] ^= 128; return data }, []int{31}, 1},
		{"the sequence", func(data []byte, at []int) []byte { data[at[33]+4] ^= 128; return data }, []int{33}, 1},
		{"the time", func(data []byte, at []int) []byte { data[at[33]+13] ^= 128; return data }, []int{33}, 1},
		{"a longer length", func(data []byte, at []int) []byte { data[at[34]] ^= 128; return data }, []int{34}, 1},
		{"a much longer length", func(data []byte, at []int) []byte { data[at[34]+2] ^= 64; return data }, []int{34}, 1},
		{"a length of nothing", func(data []byte, at []int) []byte { clear(data[at[34] : at[34]+4]); return data }, []int{34}, 1},
		{"the first message", func(data []byte, at []int) []byte { data[at[0]+4] ^= 16; return data }, []int{0}, 1},
		{"two messages in a row", func(data []byte, at []int) []byte { data[at[40]+24] ^= 1; data[at[41]+24] ^= 1; return data }, []int{40, 41}, 2},
		{"a part of the disk", func(data []byte, at []int) []byte { clear(data[at[40]+5 : at[45]+5]); return data }, []int{40, 41, 42, 43, 44, 45}, 6},
		{"an acknowledged message", func(data []byte, at []int) []byte { data[at[12]+24] ^= 1; return data }, nil, 0},
		{"a torn end", func(data []byte, _ []int) []byte { return append(data, 200, 0, 0, 0, 61, 0, 0) }, nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, file := filled(t, messages)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, tc.damage(data, offsets(data)), 0o600); err != nil {
				t.Fatal(err)
			}
			first := start(t, embedded.Config{Dir: dir})
			if err := first.Stop(t.Context()); err != nil { // before it is handled
				t.Fatal(err)
			}
			s := start(t, embedded.Config{Dir: dir})
			for _, server := range []*embedded.Server{first, s} {
				if got := server.Damage()["WORK"]; got != tc.count {
					t.Errorf("%d damaged messages, want %d", got, tc.count)
				}
			}
			var want []int
			for i := range messages {
				if (i < 10 || i >= 20) && !slices.Contains(tc.lost, i) {
					want = append(want, i)
				}
			}
			if got := readable(t, s); !slices.Equal(got, want) {
				t.Errorf("messages %v, want %v", got, want)
			}
			if err := s.DamageHandled(); err != nil {
				t.Fatal(err)
			}
			js, _ := stream(t, s)
			if _, err := js.Publish(t.Context(), "work.new", []byte("x")); err != nil {
				t.Errorf("publishing: %v", err)
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if last := start(t, embedded.Config{Dir: dir}); len(last.Damage()) > 0 {
				t.Errorf("after it was handled: %v", last.Damage())
			}
		})
	}
}

// TestDamageOfAnyByte flips one bit of a random byte of the file of the messages: at most its message is lost.
func TestDamageOfAnyByte(t *testing.T) {
	const messages, rounds = 40, 25
	dir, file := filled(t, messages)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	at := offsets(sound)
	for range rounds {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		position, bit := random.IntN(at[messages]), random.IntN(8)
		// The checksum does not tell a shorter subject of a message without headers; all of tutti's requests have headers.
		if message, found := slices.BinarySearch(at, position-20); found || message > 0 && at[message-1] == position-21 {
			continue
		}
		data := bytes.Clone(sound)
		data[position] ^= 1 << bit
		if err := os.WriteFile(filepath.Join(copied, "jetstream", "$G", "streams", "WORK", "msgs", "1.blk"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := start(t, embedded.Config{Dir: copied})
		hit, _ := slices.BinarySearch(at, position+1)
		var want []int
		for i := range messages {
			if (i < 10 || i >= 20) && i != hit-1 {
				want = append(want, i)
			}
		}
		if got := readable(t, s); !slices.Equal(got, want) || hit-1 >= 20 && s.Damage()["WORK"] != 1 {
			t.Errorf("bit %d of byte %d, in message %d: %v damaged, messages %v, want %v", bit, position, hit-1, s.Damage(), got, want)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
