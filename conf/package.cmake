# What is installed, and the Debian package that CPack makes of it: ninja package, or cpack -G DEB.
#
# Paths below /etc are absolute, all others lie under the prefix (of the package: /usr).  What the package depends on is
# asked of dpkg-shlibdeps, so that it fits the release that it is built on.
set(SINKONCE_PACKAGER "sinkonce packaging <packaging@sinkonce.invalid>" CACHE STRING
    "who makes the package, as NAME <ADDRESS>: its Maintainer field")
set(package_folder ${PROJECT_BINARY_DIR}/package)
set(doc_folder share/doc/sinkonce)

# Manual pages and the changelog lie compressed in a package, without the time of the compression in them.
function(install_compressed source destination name)
    set(compressed ${package_folder}/${name}.gz)
    add_custom_command(OUTPUT ${compressed} DEPENDS ${source} VERBATIM
        COMMAND gzip -9 -n -c ${source} > ${compressed})
    set_property(GLOBAL APPEND PROPERTY SINKONCE_COMPRESSED ${compressed})
    install(FILES ${compressed} DESTINATION ${destination})
endfunction()

string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(conf/debian/changelog.in ${package_folder}/changelog @ONLY)
install_compressed(${PROJECT_SOURCE_DIR}/conf/man/sinkonce.8 share/man/man8 sinkonce.8)
install_compressed(${PROJECT_SOURCE_DIR}/conf/man/sinkonce-env.5 share/man/man5 sinkonce-env.5)
install_compressed(${package_folder}/changelog ${doc_folder} changelog)
get_property(compressed_files GLOBAL PROPERTY SINKONCE_COMPRESSED)
add_custom_target(package_files ALL DEPENDS ${compressed_files})

install(TARGETS sinkonce DESTINATION bin)
install(FILES conf/sinkonce.env DESTINATION /etc/sinkonce)
install(FILES conf/systemd/sinkonce.service DESTINATION lib/systemd/system)
install(FILES conf/systemd/credentials.conf DESTINATION ${doc_folder}/examples)
install(FILES conf/debian/copyright DESTINATION ${doc_folder})

set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "${SINKONCE_PACKAGER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "exactly-once effect for Kafka sink connectors over HTTP")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"A sidecar HTTP proxy between a Kafka sink connector that delivers at least
once and a target that is not idempotent. It finds each record's topic,
partition and offset in the request, drops what the target has already
applied, sends on the rest byte for byte, and keeps a ledger of what nobody
can know.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, procps") # procps: the kill of ExecReload
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/conf/debian/conffiles ${PROJECT_SOURCE_DIR}/conf/debian/postinst
    ${PROJECT_SOURCE_DIR}/conf/debian/prerm ${PROJECT_SOURCE_DIR}/conf/debian/postrm)
include(CPack)
