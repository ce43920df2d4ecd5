# Sends a TLS greeting for a host that is not allowed, inside a tunnel to the allowed host.
read -r line
project=$(dirname "$0")
greeting=FgMBAIwBAACIAwMHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwAABBMBwCsBAABbAAAAEgAQAAANZXhmaWwuZXhhbXBsZQANAAYABAQDCAQACgAEAAIAHQArAAUEAwQDAwAzACYAJAAdACAJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQ==
export greeting
export allowed=localhost:$(cat allowed-port.txt)
evidence=$(timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128 && printf "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" "$allowed" "$allowed" >&3 &&
    printf %s "$greeting" | base64 -d >&3 && cat <&3' 2>&1 | grep -q DONE && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
