package sectionfile

// Ascending reports whether numbers are strictly ascending.
func Ascending(numbers []uint64) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			return false
		}
	}
	return true
}

// IsPartition reports whether bounds are non-decreasing from 0 to total.
func IsPartition(bounds []uint32, total int) bool {
	if len(bounds) == 0 || bounds[0] != 0 || uint64(bounds[len(bounds)-1]) != uint64(total) {
		return false
	}
	for i := 1; i < len(bounds); i++ {
		if bounds[i] < bounds[i-1] {
			return false
		}
	}
	return true
}

// AllBelow reports whether all numbers are below bound.
func AllBelow(numbers []uint32, bound int) bool {
	highest := uint32(0)
	for _, number := range numbers {
		highest = max(highest, number)
	}
	return len(numbers) == 0 || uint64(highest) < uint64(bound)
}
