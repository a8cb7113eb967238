package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// message is the message of every line; the server's text is in the attribute "text".
const message = "embedded queue"

// logger forwards the server's log to slog. Notices of normal operation are logged at the debug level.
type logger struct {
	log *slog.Logger
	// fatal receives the text of the first fatal error: the server does not exit after one.
	fatal chan string

	mu sync.Mutex
	// last is the text of the last warning, count how often in a row it was written.
	last  string
	count int
}

func newLogger(log *slog.Logger) *logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &logger{log: log, fatal: make(chan string, 1)}
}

// Noticef implements the server's Logger.
func (l *logger) Noticef(format string, v ...any) {
	l.log.Debug(message, "text", fmt.Sprintf(format, v...))
}

// Warnf implements the server's Logger. Of a text that repeats, only the first and those at doubled counts are warnings: the server may write
// hundreds in a second.
func (l *logger) Warnf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.mu.Lock()
	if text != l.last {
		l.last, l.count = text, 0
	}
	l.count++
	count := l.count
	l.mu.Unlock()
	level := slog.LevelWarn
	if count&(count-1) != 0 {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, message, "text", text, "count", count)
}

// Errorf implements the server's Logger.
func (l *logger) Errorf(format string, v ...any) {
	l.log.Error(message, "text", fmt.Sprintf(format, v...))
}

// Debugf implements the server's Logger.
func (l *logger) Debugf(format string, v ...any) {
	l.log.Debug(message, "text", fmt.Sprintf(format, v...))
}

// Tracef implements the server's Logger.
func (l *logger) Tracef(format string, v ...any) {
	l.log.Debug(message, "text", fmt.Sprintf(format, v...))
}

// Fatalf implements the server's Logger; it does not end the process.
func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	select {
	case l.fatal <- text:
	default:
	}
	l.log.Error(message, "text", text)
}
