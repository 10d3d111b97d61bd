# Threads that share a lock and a queue, and processes. Package: python3.
cat >/root/threads.py <<-END
	import hashlib, queue, subprocess, threading

	todo, done, lock = queue.Queue(), {}, threading.Lock()

	def work():
	    while (n := todo.get()) is not None:
	        said = subprocess.run(["echo", str(n)], capture_output=True).stdout if n % 10 == 0 else b""
	        digest = hashlib.sha256(said + bytes(range(n))).hexdigest()
	        with lock:
	            done[n] = digest

	threads = [threading.Thread(target=work) for _ in range(6)]
	for t in threads:
	    t.start()
	for n in range(100):
	    todo.put(n)
	for t in threads:
	    todo.put(None)
	for t in threads:
	    t.join()
	assert len(done) == 100
	print(sum(int(d, 16) for d in done.values()) % 1000003)
END
python3 /root/threads.py
