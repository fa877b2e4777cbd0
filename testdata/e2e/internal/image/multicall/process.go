package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pgrep prints the ids of the processes whose name contains the last argument.
func pgrep() error {
	pattern := os.Args[len(os.Args)-1]
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	found := false
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that has ended meanwhile is no match.
		if comm, err := os.ReadFile(file); err == nil && strings.Contains(string(comm), pattern) {
			fmt.Println(pid)
			found = true
		}
	}
	if !found {
		os.Exit(1) // silently, as procps does
	}
	return nil
}

// ipcs prints the shared memory segments in the form of util-linux.
func ipcs() error {
	table, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return err
	}
	fmt.Println("\n------ Shared Memory Segments --------")
	fmt.Println("key        shmid      owner      perms      bytes      nattch     status")
	_, rows, _ := strings.Cut(string(table), "\n")
	for row := range strings.Lines(rows) {
		if f := strings.Fields(row); len(f) >= 8 { // key shmid perms size cpid lpid nattch uid ...
			fmt.Printf("0x%s %s uid%s %s %s %s\n", f[0], f[1], f[7], f[2], f[3], f[6])
		}
	}
	return nil
}
