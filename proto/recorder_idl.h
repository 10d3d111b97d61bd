/*
 * The text of io.ptsnap.recorder.varlink, made into a C string by the build, for
 * org.varlink.service.GetInterfaceDescription.
 */
#pragma once

extern const char recorder_idl[];
