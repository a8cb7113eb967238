package sectionfile

import "io"

// Memory is an Output in memory, in pages.
type Memory struct {
	pages []*[memoryPage]byte
	size  int64
}

// memoryPage is the length of a page.
const memoryPage = 64 << 10

var _ Output = (*Memory)(nil)

// Size returns the length of what was written.
func (m *Memory) Size() int64 { return m.size }

// WriteAt implements io.WriterAt.
func (m *Memory) WriteAt(b []byte, at int64) (int, error) {
	m.size = max(m.size, at+int64(len(b)))
	for int64(len(m.pages))*memoryPage < m.size {
		m.pages = append(m.pages, new([memoryPage]byte))
	}
	n := 0
	for n < len(b) {
		to := at + int64(n)
		n += copy(m.pages[to/memoryPage][to%memoryPage:], b[n:])
	}
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (m *Memory) ReadAt(b []byte, at int64) (int, error) {
	n := 0
	for n < len(b) && at+int64(n) < m.size {
		from := at + int64(n)
		page := m.pages[from/memoryPage][:min(memoryPage, m.size-from/memoryPage*memoryPage)]
		n += copy(b[n:], page[from%memoryPage:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Truncate implements Output.
func (m *Memory) Truncate(size int64) error {
	m.size = size
	return nil
}
