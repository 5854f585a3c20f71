# The Debian package: cmake -G Ninja -B build -DCMAKE_INSTALL_PREFIX=/usr -DTESTS=OFF -DSHARED_LIBRARIES=ON && ninja -C build && (cd build && cpack). Its place in /usr
# decides where zsh finds its completion, so the prefix is given when it is configured.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kirocrew-pod)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "throwaway, isolated instances of a server")
set(CPACK_PACKAGE_DESCRIPTION
"A pod has its own home, an OS home that becomes its agent's HOME, its own
port and its own service unit. Bringing one up returns when it answers and
the listener is proven to be the pod's; taking it down leaves no residue, and
looks again afterwards. Pods run below the user's systemd, and where there is
none each supervises itself. KiroCrew checkouts are the default; any command
that serves on a port will do.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The last two are loaded where they are used, so shlibdeps does not see them.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "bubblewrap, libsystemd0, libsqlite3-0")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "dbus-user-session, git")
include(CPack)
