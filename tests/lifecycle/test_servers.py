"""Real servers as payloads: up, answering, back after kill -9 with their home intact, and gone."""

import os
import signal
import socket
import unittest

from plane import SERVE, PlaneTest

NGINX = """
cat >"$KIROCREW_WORKSPACE/nginx.conf" <<END
pid $KIROCREW_WORKSPACE/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path $KIROCREW_WORKSPACE/body; proxy_temp_path $KIROCREW_WORKSPACE/proxy; fastcgi_temp_path $KIROCREW_WORKSPACE/fastcgi;
  uwsgi_temp_path $KIROCREW_WORKSPACE/uwsgi; scgi_temp_path $KIROCREW_WORKSPACE/scgi;
  server { listen 127.0.0.1:$PORT; location / { return 200 "nginx in $KIROCREW_POD_NAME"; } }
}
END
exec /usr/sbin/nginx -p "$KIROCREW_WORKSPACE" -c "$KIROCREW_WORKSPACE/nginx.conf" -g "daemon off;"
"""


def redis_says(port, words):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall((words + "\r\n").encode())
        return connection.recv(4096).decode().strip()


class Servers(PlaneTest):
    def comes_back(self, name, first):
        """kill -9 of the main process: the service is back on the same port, with the same home."""
        kept = os.path.join(first["home"], "workspace", "kept")
        with open(kept, "w") as text:
            text.write("kept")
        inode = os.stat(first["home"]).st_ino
        os.kill(first["pid"], signal.SIGKILL)
        self.eventually(lambda: self.ls()[name]["pid"] not in (None, first["pid"]) and self.state(name) == "up", seconds=40, what="the restart")
        self.assertTrue(os.path.exists(kept))
        self.assertEqual(os.stat(first["home"]).st_ino, inode)

    def goes(self, name, report):
        self.down(name)
        self.assert_no_residue(report["id"])
        with socket.socket() as probe:
            self.assertNotEqual(probe.connect_ex(("127.0.0.1", report["port"])), 0)

    def test_python_http_server(self):
        report = self.up("web")
        self.assertEqual(self.get(report["port"])[0], 200)
        self.comes_back("web", report)
        self.assertEqual(self.get(report["port"])[0], 200)
        self.goes("web", report)

    def test_nginx(self):
        report = self.up("web", "/bin/sh", "-c", NGINX, flags=("--health", "http:/"))
        self.assertEqual(self.get(report["port"])[1], b"nginx in web")
        self.comes_back("web", report)
        self.assertEqual(self.get(report["port"])[1], b"nginx in web")
        self.goes("web", report)

    def test_redis(self):
        report = self.up("cache", "redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--dir", "{home}/workspace", "--appendonly", "yes",
                         "--appendfsync", "always")
        self.assertEqual(redis_says(report["port"], "SET key value"), "+OK")
        self.comes_back("cache", report)
        self.eventually(lambda: "value" in redis_says(report["port"], "GET key"), what="the end of its loading, for which a port that answers is no sign")
        self.goes("cache", report)

    def test_one_plane_holds_them_all(self):
        first, second = self.up("one", *SERVE), self.up("two", *SERVE)
        self.assertNotEqual(first["port"], second["port"])
        self.down("one")
        self.assertEqual(self.state("two"), "up")
        self.goes("two", second)


if __name__ == "__main__":
    unittest.main()
