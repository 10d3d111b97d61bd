# A web server with two workers, and eight clients. Packages: nginx-light, apache2-utils.
mkdir -p /root/www /var/log/nginx /var/lib/nginx && seq 2000 >/root/www/index.html && chmod 755 /root || exit 1
cat >/root/nginx.conf <<-END
	user root;
	worker_processes 2;
	pid /run/nginx.pid;
	events { worker_connections 64; }
	http {
		access_log /var/log/nginx/access.log;
		gzip on;
		gzip_types *;
		server { listen 127.0.0.1:8080; root /root/www; }
	}
END
nginx -c /root/nginx.conf || exit 1
ab -q -n 200 -c 8 -H 'Accept-Encoding: gzip' http://127.0.0.1:8080/ >/root/ab.log || { cat /root/ab.log; exit 1; }
nginx -c /root/nginx.conf -s quit
cat /root/ab.log
grep -q 'Failed requests: *0$' /root/ab.log
